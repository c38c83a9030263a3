"""What the objects in a model file must be like: parameters, curves, order and columns.

Each object is checked once, when it is read, so that predictions need not doubt it: a file
may come from anyone. What trees must be like is with the trees.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin

from .._compat import validate_params
from ..decision.calibration import (
    BetaCurve,
    Calibrator,
    ClassCurves,
    Isotonic,
    Knots,
    Line,
    Platt,
    ProbabilityCurve,
)
from ..tables.encoding import N_BUCKETS, N_DIRECTIONS, Levels, Words
from ..voters.columns import (
    KNOTS,
    NumberEncoder,
    PairColumns,
    RankScaler,
    RankSplines,
)
from ..voters.estimators import Relabelled
from ..voters.rates import RateEncoder, Rates
from . import trees
from .container import ModelFileError

LARGEST = 1e100
"""Of the numbers of a curve: sums and products of a few of them stay finite."""
LARGEST_OF_WORDS = 1e6
"""Weights are logarithms, and directions of length 1."""
ROUNDING = 1e-12
"""By which means of votes that differ in the last bit may be out of order."""


def _require(condition: Any, complaint: str) -> None:
    """Refuse the file unless the condition holds."""
    if not condition:
        raise ModelFileError(f"it holds what cannot be right: {complaint}")


# Parameters.


def check_params(model: Any) -> None:
    """All parameters of the constructor, each of a kind that the class allows.

    They are asked for in predictions too: scikit-learn reads an estimator's tags off them.
    How many processes it may start and where it may keep pickles are ours, not the file's.
    """
    cls, given = type(model), vars(model)
    if "memory" in given:
        given["memory"] = None
    n_jobs, cpus = given.get("n_jobs"), os.cpu_count() or 1
    if isinstance(n_jobs, int) and abs(n_jobs) > cpus:
        given["n_jobs"] = cpus if n_jobs > 0 else -1
    missing = sorted(set(signature(cls).parameters) - vars(model).keys())
    _require(not missing, f"{cls.__name__} without {', '.join(missing)[:200]}")
    try:
        validate_params(model)
    except (TypeError, ValueError) as error:
        # What was given comes last, and can be of any length.
        asked = str(error).partition(" Got ")[0].replace("\n", " ")
        raise ModelFileError(f"it holds what cannot be right: {asked[:300]}") from error


# What a classifier knows, and what is looked up by its place in an order.


def check_classes(state: dict[str, Any]) -> None:
    """Classes in order, and as many as there are said to be."""
    known: Any = state.get("classes_")
    n_classes = state.get("n_classes_")
    if n_classes is not None:
        _require(np.shape(known) == (n_classes,), "another number of classes")
    if isinstance(known, np.ndarray) and known.ndim == 1:
        _require((known[1:] > known[:-1]).all(), "classes out of order")


def _check_dummy(model: Any) -> None:
    """A constant; it makes room for as many classes as it says that it has."""
    state = vars(model)
    if "classes_" in state:
        shape = np.shape(state["classes_"])
        known = len(shape) == 1 and shape == np.shape(state["class_prior_"])
        _require(known and state["n_classes_"] == shape[0], "another number of classes")
        _require(state["n_outputs_"] == 1, "more than one output")


def _check_relabelled(model: Relabelled) -> None:
    """Its classes stand for the numbers 0, 1, ... of the classifier within."""
    known: Any = vars(model).get("classes_")
    _require(_is_column(known, None, "biuf"), "classes of no known kind")
    inner = np.asarray(getattr(model.estimator, "classes_", np.arange(len(known))))
    _require(np.array_equal(inner, np.arange(len(known))), "another number of classes")


def _check_categories(encoder: Any) -> None:
    """Numbers are found by halving, and only where they rise; NaN is last."""
    known = vars(encoder).get("categories_")
    if known is None:
        return
    _require(isinstance(known, list), "categories of no known kind")
    for own in known:
        array = isinstance(own, np.ndarray) and own.ndim == 1
        _require(array and own.dtype.kind in "biufUSO", "categories of no known kind")
        if own.dtype.kind in "biuf":
            _require(_rises(own), "categories out of order")
        else:
            _require(len(set(own.tolist())) == len(own), "categories that appear twice")


def _check_ranks(scaler: RankScaler) -> None:
    knots = vars(scaler).get("knots_")
    if knots is None:
        return
    _require(isinstance(knots, list), "no list of knots")
    for pair in knots:
        _require(isinstance(pair, tuple) and len(pair) == 2, "knots without heights")
        values, heights = pair
        _require(_is_column(values) and len(values) > 0, "no knots")
        _require(_is_column(heights, len(values)), "knots without heights")
        _require(_rises(values), "knots out of order")
        _require(np.isfinite(heights).all() and _rises(heights), "heights out of order")


def _check_splines(model: RankSplines) -> None:
    state = vars(model)
    if "bent_" not in state:
        return
    _require(isinstance(state.get("ranks_"), RankScaler), "splines without ranks")
    trees.require_array(model.bent_, np.bool_, (len(model.ranks_.knots_),), "splines")


def _check_pairs(model: PairColumns) -> None:
    state = vars(model)
    if "pairs_" not in state:
        return
    trees.require_array(model.pairs_, np.int64, (None, 2), "pairs of columns")
    n: Any = state.get("n_features_in_")
    _require(type(n) is int, "pairs of no known columns")
    in_range = ((model.pairs_ >= 0) & (model.pairs_ < n)).all()
    _require(in_range and len(model.pairs_) <= n * n, "pairs of columns out of range")


def _check_levels(levels: Levels) -> None:
    trees.check_hashes(levels.hashes)
    n = len(levels.hashes)
    trees.require_array(levels.counts, np.uint32, (n,), "counts of levels")
    _require((levels.counts > 0).all(), "levels that no rows have")


def _check_words(words: Words) -> None:
    trees.require_array(words.weights, np.float32, (2 * N_BUCKETS,), "weights of words")
    shape = (2 * N_BUCKETS, None)
    trees.require_array(words.directions, np.float32, shape, "directions of words")
    _require(1 <= words.directions.shape[1] <= N_DIRECTIONS, "directions of words")
    for numbers in (words.weights, words.directions):
        _require((np.abs(numbers) <= LARGEST_OF_WORDS).all(), "words that weigh too much")


def _check_rates(rates: Rates) -> None:
    """A row of rates for each hash, one for missing values and one for the rest."""
    trees.check_hashes(rates.hashes)
    shape = (len(rates.hashes) + 2, None)
    trees.require_array(rates.rates, np.float64, shape, "rates")
    within = (rates.rates >= 0) & (rates.rates <= 1)
    _require(rates.rates.shape[1] > 0 and within.all(), "rates out of range")


def _check_rate_encoder(encoder: RateEncoder) -> None:
    known: Any = vars(encoder).get("rates_", {})
    _require(isinstance(known, dict), "rates of no known kind")
    _require(all(isinstance(one, Rates) for one in known.values()), "no rates")
    widths = {one.rates.shape[1] for one in known.values()}
    _require(len(widths) < 2, "rates of other classes")


def _check_quantiles(scaler: Any) -> None:
    state = vars(scaler)
    if "quantiles_" not in state:
        return
    quantiles, references = state["quantiles_"], state.get("references_")
    _require(_is_column(references) and _rises(references), "references_ out of order")
    shape = (len(references), None)
    is_table = isinstance(quantiles, np.ndarray) and trees.has_shape(quantiles, shape)
    _require(is_table and quantiles.dtype.kind == "f", "quantiles_ of no known kind")
    # A column of missing values has NaN alone.
    falls = quantiles[1:] < quantiles[:-1]
    some = np.isnan(quantiles)
    _require(not falls.any(), "quantiles_ out of order")
    _require((some.all(axis=0) | ~some.any(axis=0)).all(), "quantiles_ with gaps")


def _is_column(value: Any, n: int | None = None, kinds: str = "f") -> bool:
    """Whether it is an array of numbers, ``n`` of them."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
        return False
    return trees.has_shape(value, (n,))


def _rises(values: NDArray[Any]) -> bool:
    """Whether each is above the one before; the last may be NaN."""
    if len(values) > 1 and values[-1] != values[-1]:
        values = values[:-1]
    return bool((values[1:] > values[:-1]).all())


# Curves of votes: finite, rising or level, and within the limits of what they stand for.


def _require_numbers(curve: Any, *names: str, least: float = -LARGEST) -> None:
    for name in names:
        value = getattr(curve, name)
        fine = isinstance(value, float) and least <= value <= LARGEST
        _require(fine, f"{type(curve).__name__}.{name} is {str(value)[:40]}")


def _check_line(curve: Line | Platt) -> None:
    _require_numbers(curve, "slope", least=0.0)
    _require_numbers(curve, "intercept")


def _check_beta(curve: BetaCurve) -> None:
    _require_numbers(curve, "for_votes", "against", least=0.0)
    _require_numbers(curve, "intercept")
    _require_numbers(curve, "scale", least=1.0)
    _require_numbers(curve, "low", "high", least=np.finfo(np.float64).tiny)
    _require(max(curve.low, curve.high) <= 0.5, "a BetaCurve that is cut off")


def _check_knots(curve: Knots) -> None:
    for name in ("votes", "log_odds"):
        values = getattr(curve, name)
        _require(isinstance(values, tuple) and len(values) > 0, f"no {name} of knots")
        numbers = all(isinstance(v, float) and abs(v) <= LARGEST for v in values)
        _require(numbers, f"{name} of knots that are no finite numbers")
        falls = np.diff(values) < -ROUNDING * np.abs(values).max()
        _require(not falls.any(), f"{name} of knots out of order")
    _require(len(curve.votes) == len(curve.log_odds), "knots without heights")


def _check_isotonic(curve: Isotonic) -> None:
    votes, calibrated = curve.votes, curve.calibrated
    trees.require_array(votes, np.float32, (None,), "votes")
    trees.require_array(calibrated, np.float64, (len(votes),), "calibrated votes")
    _require(len(votes) > 0 and np.isfinite(votes).all(), "no knots")
    _require((votes[1:] > votes[:-1]).all(), "knots out of order")
    _require((np.abs(calibrated) <= 1).all(), "calibrated votes out of range")
    falls = np.diff(calibrated) < -ROUNDING
    _require(not falls.any(), "calibrated votes out of order")


def _check_class_curves(curves: ClassCurves) -> None:
    known = isinstance(curves.curves, tuple) and len(curves.curves) > 2
    _require(known, "curves of no known classes")
    _require(all(map(is_vote_curve, curves.curves)), "curves of no known kind")


def is_vote_curve(curve: Any) -> bool:
    """Whether it calibrates a voter's votes, of one class against the rest."""
    return isinstance(curve, (Platt, Isotonic))


def _check_probability_curve(curve: ProbabilityCurve) -> None:
    known = isinstance(curve.log_odds, (Line, BetaCurve, Knots))
    _require(known and isinstance(curve.method, str), "a curve of no known kind")
    _require_numbers(curve, "shift")
    _require_numbers(curve, "scale", least=1.0)


def _check_calibrator(calibrator: Calibrator) -> None:
    curves = calibrator.curves
    known = isinstance(curves, tuple) and len(curves) > 0
    curved = known and all(isinstance(one, ProbabilityCurve) for one in curves)
    _require(curved, "a calibrator without curves")


CHECKS: dict[str, Callable[[Any], None]] = {
    "BetaCurve": _check_beta,
    "Binning": trees.check_binning,
    "Calibrator": _check_calibrator,
    "ClassCurves": _check_class_curves,
    "DummyClassifier": _check_dummy,
    "FastForestClassifier": trees.check_model,
    "FastTreeClassifier": trees.check_model,
    "Features": trees.check_features,
    "Forest": trees.check_forest,
    "Isotonic": _check_isotonic,
    "Knots": _check_knots,
    "Line": _check_line,
    "OneHotEncoder": _check_categories,
    "OrdinalEncoder": _check_categories,
    "Platt": _check_line,
    "ProbabilityCurve": _check_probability_curve,
    "Categories": trees.check_categories,
    "HashedCategories": trees.check_hashed,
    "Levels": _check_levels,
    "Words": _check_words,
    "QuantileTransformer": _check_quantiles,
    "PairColumns": _check_pairs,
    "RankScaler": _check_ranks,
    "RankSplines": _check_splines,
    "RateEncoder": _check_rate_encoder,
    "Rates": _check_rates,
    "Relabelled": _check_relabelled,
    "TreeVoters": trees.check_voters,
}
"""By the name of the class."""


# How many columns come out of each step, and into the next.

BY_COLUMN = ("center_", "max_abs_", "mean_", "min_", "scale_", "statistics_", "var_")
"""Attributes of transformers with one entry for each column that they take."""
MADE = ("_max_components", "_n_features_out")
"""How many columns a discriminant analysis makes: no more than it takes. Their names are
made when they are counted, so no file may ask for any number of them."""


def check_width(model: Any, n_in: int | None) -> int | None:
    """Refuse an estimator that expects other columns than it gets; how many it makes.

    None where that is not known, as of classifiers, and of what the table here lacks.
    """
    if isinstance(model, str) or model is None:
        return 0 if model == "drop" else n_in
    name, state = type(model).__name__, getattr(model, "__dict__", {})
    if isinstance(model, Relabelled):
        return check_width(model.estimator, n_in)
    if name == "Pipeline":
        for _, step in model.steps:
            n_in = check_width(step, n_in)
        return n_in
    if isinstance(model, NumberEncoder) and "empty_" in state:
        known = model.categories_
        _same_width(name, n_in, np.size(model.empty_))
        _same_width(name, n_in, None if known is None else len(known.by_column))
        return n_in
    if isinstance(model, RateEncoder) and "rates_" in state:
        made = sum(one.rates.shape[1] for one in model.rates_.values())
        lost = len(model.rates_)
        return None if n_in is None else n_in - lost + made
    if isinstance(model, RankScaler) and "knots_" in state:
        _same_width(name, n_in, len(model.knots_))
        return n_in
    if isinstance(model, RankSplines) and "bent_" in state:
        check_width(model.ranks_, n_in)
        return None if n_in is None else n_in + len(KNOTS) * int(model.bent_.sum())
    if isinstance(model, PairColumns) and "pairs_" in state:
        _same_width(name, n_in, model.n_features_in_)
        return None if n_in is None else n_in + 3 * len(model.pairs_)
    expected = _columns_in(model)
    _same_width(name, n_in, expected)
    if name == "ColumnTransformer" and "transformers_" in state:
        return _check_columns(model, model.n_features_in_)
    if expected is None or not hasattr(model, "get_feature_names_out"):
        return None
    if name == "SimpleImputer":
        _require(isinstance(state.get("statistics_"), np.ndarray), "no statistics_")
    for one in BY_COLUMN:
        if isinstance(own := state.get(one), np.ndarray):
            _same_width(f"{name}.{one}", n_in, own.shape[0] if own.ndim == 1 else -1)
    if isinstance(state.get("categories_"), list):
        _same_width(f"{name}.categories_", n_in, len(state["categories_"]))
    if isinstance(model, OneToOneFeatureMixin):
        return expected  # without making a name for each
    for one in MADE:
        made = state.get(one, 0)
        whole = isinstance(made, (int, np.integer)) and 0 <= made <= expected
        _require(whole, f"{name}.{one} is {str(made)[:40]}")
    return len(model.get_feature_names_out())


def _columns_in(model: Any) -> int | None:
    try:
        n = model.n_features_in_
    except Exception:  # not fitted, or none of its business; each library has its own
        return None
    return int(n) if isinstance(n, (int, np.integer)) else None


def _same_width(name: str, given: int | None, expected: int | None) -> None:
    if given is not None and expected is not None and given != expected:
        raise ModelFileError(
            f"a voter's {name} expects {expected} columns, and is given {given}"
        )


def _check_columns(model: Any, n_in: int) -> int | None:
    """A ``ColumnTransformer``: its parts, and where it puts what they make."""
    total: int | None = 0
    for name, part, columns in model.transformers_:
        if isinstance(columns, slice):
            own: int | None = len(range(*columns.indices(n_in)))
        elif isinstance(columns, (list, np.ndarray)):
            is_mask = len(columns) > 0 and isinstance(columns[0], (bool, np.bool_))
            own = int(np.sum(columns)) if is_mask else len(columns)
        else:
            own = None
        made = check_width(part, own)
        place = model.output_indices_.get(name, slice(0, 0))
        if made is not None and own:
            _same_width(f"ColumnTransformer's {name!r}", place.stop - place.start, made)
        total = None if total is None or made is None else total + (made if own else 0)
    return total
