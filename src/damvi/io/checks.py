"""What the objects in a model file must be like: parameters, curves, trees and columns.

Each object is checked once, when it is read, so that predictions need not doubt it: a file
may come from anyone. What trees of other libraries must be like besides is with them.
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
    RateEncoder,
    Rates,
)
from ..voters.estimators import Relabelled
from ..voters.trees.binning import MAX_BINS, Binning, Features
from ..voters.trees.estimators import MAX_CLASSES, FastTreeClassifier
from ..voters.trees.features import Categories, HashedCategories
from ..voters.trees.forest import (
    CATEGORIES,
    N_CODES,
    NODE_COLUMNS,
    SET_BYTES,
    Forest,
    trees_of,
)
from ..voters.trees.voters import TreeVoters
from .container import ModelFileError

MOST_WEIGHT = 2**62
DEEPEST = 4096
"""Levels of a tree."""
LARGEST = 1e100
"""Of the numbers of a curve: sums and products of a few of them stay finite."""
LARGEST_OF_WORDS = 1e6
"""Weights are logarithms, and directions of length 1."""
ROUNDING = 1e-12
"""By which means of votes that differ in the last bit may be out of order."""


def require(condition: Any, complaint: str) -> None:
    """Refuse the file unless the condition holds."""
    if not condition:
        raise ModelFileError(f"it is broken, and holds what cannot be right: {complaint}")


def require_array(array: Any, dtype: Any, shape: tuple[int | None, ...], name: str) -> None:
    """An array of this type and shape (None is any number), laid out row by row."""
    require(isinstance(array, np.ndarray), f"{name} is no array")
    require(array.dtype == dtype, f"{name} is of {array.dtype}, not {np.dtype(dtype)}")
    require(has_shape(array, shape), f"{name} has the shape {array.shape}")
    require(array.flags.c_contiguous, f"{name} is laid out by columns")


def has_shape(array: NDArray[Any], shape: tuple[int | None, ...]) -> bool:
    """Whether the array has this shape; None is any number."""
    sizes = zip(shape, array.shape, strict=False)
    return array.ndim == len(shape) and all(want in (None, n) for want, n in sizes)


def require_starts(starts: Any, parts: int | None, end: int, least: int, name: str) -> None:
    """Where parts start in a list of ``end`` items, each of ``least`` or more."""
    require_array(starts, np.int64, (None if parts is None else parts + 1,), name)
    require(
        len(starts) > 1 and starts[0] == 0 and starts[-1] == end, f"{name} do not add up"
    )
    # Compared, since differences could overflow.
    require((starts[1:] >= starts[:-1]).all(), f"{name} go back")
    require((np.diff(starts) >= least).all(), f"{name} leave parts empty")


def require_family(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    inner: NDArray[np.bool_],
    roots: NDArray[np.int64],
) -> None:
    """Children after their parents, in the same tree, and one parent for each node."""
    n = len(left)
    last = np.repeat(roots[1:], np.diff(roots))
    children = np.concatenate([left[inner], right[inner]])
    parents = np.tile(np.flatnonzero(inner), 2)
    require((children > parents).all(), "children before their parents")
    require((children < np.tile(last[inner], 2)).all(), "children outside of their tree")
    born = np.bincount(children, minlength=n)
    born[roots[:-1]] += 1
    require((born == 1).all(), "nodes with no parent, or with two")


def require_depth(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    inner: NDArray[np.bool_],
    roots: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The depth of each tree, if none is a mere chain of a file's making.

    Some kernels and libraries take memory or stack for each step from the root.
    """
    depths = np.zeros(len(roots) - 1, dtype=np.int64)
    level, trees, depth = roots[:-1], np.arange(len(depths)), 0
    while True:
        splits = inner[level]
        parents, trees = level[splits], np.tile(trees[splits], 2)
        if len(parents) == 0:
            return depths
        depth += 1
        require(depth <= DEEPEST, f"trees of more than {DEEPEST:,} levels")
        depths[trees] = depth
        level = np.concatenate([left[parents], right[parents]])


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
    require(not missing, f"{cls.__name__} without {', '.join(missing)[:200]}")
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
        require(np.shape(known) == (n_classes,), "another number of classes")
    if isinstance(known, np.ndarray) and known.ndim == 1:
        require((known[1:] > known[:-1]).all(), "classes out of order")


def _check_dummy(model: Any) -> None:
    """A constant; it makes room for as many classes as it says that it has."""
    state = vars(model)
    if "classes_" in state:
        shape = np.shape(state["classes_"])
        known = len(shape) == 1 and shape == np.shape(state["class_prior_"])
        require(known and state["n_classes_"] == shape[0], "another number of classes")
        require(state["n_outputs_"] == 1, "more than one output")


def _check_relabelled(model: Relabelled) -> None:
    """Its classes stand for the numbers 0, 1, ... of the classifier within."""
    known: Any = vars(model).get("classes_")
    require(_is_column(known, None, "biuf"), "classes of no known kind")
    inner = np.asarray(getattr(model.estimator, "classes_", np.arange(len(known))))
    require(np.array_equal(inner, np.arange(len(known))), "another number of classes")


def _check_encoder(encoder: Any) -> None:
    """Numbers are found by halving, and only where they rise; NaN is last."""
    known = vars(encoder).get("categories_")
    if known is None:
        return
    require(isinstance(known, list), "categories of no known kind")
    for own in known:
        array = isinstance(own, np.ndarray) and own.ndim == 1
        require(array and own.dtype.kind in "biufUSO", "categories of no known kind")
        if own.dtype.kind in "biuf":
            require(_rises(own), "categories out of order")
        else:
            require(len(set(own.tolist())) == len(own), "categories that appear twice")


def _check_ranks(scaler: RankScaler) -> None:
    knots = vars(scaler).get("knots_")
    if knots is None:
        return
    require(isinstance(knots, list), "no list of knots")
    for pair in knots:
        require(isinstance(pair, tuple) and len(pair) == 2, "knots without heights")
        values, heights = pair
        require(_is_column(values) and len(values) > 0, "no knots")
        require(_is_column(heights, len(values)), "knots without heights")
        require(_rises(values), "knots out of order")
        require(np.isfinite(heights).all() and _rises(heights), "heights out of order")


def _check_splines(model: RankSplines) -> None:
    state = vars(model)
    if "bent_" not in state:
        return
    require(isinstance(state.get("ranks_"), RankScaler), "splines without ranks")
    require_array(model.bent_, np.bool_, (len(model.ranks_.knots_),), "splines")


def _check_pairs(model: PairColumns) -> None:
    state = vars(model)
    if "pairs_" not in state:
        return
    require_array(model.pairs_, np.int64, (None, 2), "pairs of columns")
    n: Any = state.get("n_features_in_")
    require(type(n) is int, "pairs of no known columns")
    in_range = ((model.pairs_ >= 0) & (model.pairs_ < n)).all()
    require(in_range and len(model.pairs_) <= n * n, "pairs of columns out of range")


def _check_levels(levels: Levels) -> None:
    _check_hashes(levels.hashes)
    n = len(levels.hashes)
    require_array(levels.counts, np.uint32, (n,), "counts of levels")
    require((levels.counts > 0).all(), "levels that no rows have")


def _check_words(words: Words) -> None:
    require_array(words.weights, np.float32, (2 * N_BUCKETS,), "weights of words")
    shape = (2 * N_BUCKETS, None)
    require_array(words.directions, np.float32, shape, "directions of words")
    require(1 <= words.directions.shape[1] <= N_DIRECTIONS, "directions of words")
    for numbers in (words.weights, words.directions):
        require((np.abs(numbers) <= LARGEST_OF_WORDS).all(), "words that weigh too much")


def _check_rates(rates: Rates) -> None:
    """A row of rates for each hash, one for missing values and one for the rest."""
    _check_hashes(rates.hashes)
    shape = (len(rates.hashes) + 2, None)
    require_array(rates.rates, np.float64, shape, "rates")
    within = (rates.rates >= 0) & (rates.rates <= 1)
    require(rates.rates.shape[1] > 0 and within.all(), "rates out of range")


def _check_rate_encoder(encoder: RateEncoder) -> None:
    known: Any = vars(encoder).get("rates_", {})
    require(isinstance(known, dict), "rates of no known kind")
    require(all(isinstance(one, Rates) for one in known.values()), "no rates")
    widths = {one.rates.shape[1] for one in known.values()}
    require(len(widths) < 2, "rates of other classes")


def _check_quantiles(scaler: Any) -> None:
    state = vars(scaler)
    if "quantiles_" not in state:
        return
    quantiles, references = state["quantiles_"], state.get("references_")
    require(_is_column(references) and _rises(references), "references_ out of order")
    shape = (len(references), None)
    is_table = isinstance(quantiles, np.ndarray) and has_shape(quantiles, shape)
    require(is_table and quantiles.dtype.kind == "f", "quantiles_ of no known kind")
    # A column of missing values has NaN alone.
    falls = quantiles[1:] < quantiles[:-1]
    some = np.isnan(quantiles)
    require(not falls.any(), "quantiles_ out of order")
    require((some.all(axis=0) | ~some.any(axis=0)).all(), "quantiles_ with gaps")


def _is_column(value: Any, n: int | None = None, kinds: str = "f") -> bool:
    """Whether it is an array of numbers, ``n`` of them."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
        return False
    return has_shape(value, (n,))


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
        require(fine, f"{type(curve).__name__}.{name} is {str(value)[:40]}")


def _check_line(curve: Line | Platt) -> None:
    _require_numbers(curve, "slope", least=0.0)
    _require_numbers(curve, "intercept")


def _check_beta(curve: BetaCurve) -> None:
    _require_numbers(curve, "for_votes", "against", least=0.0)
    _require_numbers(curve, "intercept")
    _require_numbers(curve, "scale", least=1.0)
    _require_numbers(curve, "low", "high", least=np.finfo(np.float64).tiny)
    require(max(curve.low, curve.high) <= 0.5, "a BetaCurve that is cut off")


def _check_knots(curve: Knots) -> None:
    for name in ("votes", "log_odds"):
        values = getattr(curve, name)
        require(isinstance(values, tuple) and len(values) > 0, f"no {name} of knots")
        numbers = all(isinstance(v, float) and abs(v) <= LARGEST for v in values)
        require(numbers, f"{name} of knots that are no finite numbers")
        falls = np.diff(values) < -ROUNDING * np.abs(values).max()
        require(not falls.any(), f"{name} of knots out of order")
    require(len(curve.votes) == len(curve.log_odds), "knots without heights")


def _check_isotonic(curve: Isotonic) -> None:
    votes, calibrated = curve.votes, curve.calibrated
    require_array(votes, np.float32, (None,), "votes")
    require_array(calibrated, np.float64, (len(votes),), "calibrated votes")
    require(len(votes) > 0 and np.isfinite(votes).all(), "no knots")
    require((votes[1:] > votes[:-1]).all(), "knots out of order")
    require((np.abs(calibrated) <= 1).all(), "calibrated votes out of range")
    falls = np.diff(calibrated) < -ROUNDING
    require(not falls.any(), "calibrated votes out of order")


def _check_class_curves(curves: ClassCurves) -> None:
    known = isinstance(curves.curves, tuple) and len(curves.curves) > 2
    require(known, "curves of no known classes")
    require(all(map(is_vote_curve, curves.curves)), "curves of no known kind")


def is_vote_curve(curve: Any) -> bool:
    """Whether it calibrates a voter's votes, of one class against the rest."""
    return isinstance(curve, (Platt, Isotonic))


def _check_probability_curve(curve: ProbabilityCurve) -> None:
    known = isinstance(curve.log_odds, (Line, BetaCurve, Knots))
    require(known and isinstance(curve.method, str), "a curve of no known kind")
    _require_numbers(curve, "shift")
    _require_numbers(curve, "scale", least=1.0)


def _check_calibrator(calibrator: Calibrator) -> None:
    curves = calibrator.curves
    known = isinstance(curves, tuple) and len(curves) > 0
    curved = known and all(isinstance(one, ProbabilityCurve) for one in curves)
    require(curved, "a calibrator without curves")


# The built-in trees. Compiled code walks them and checks no index, so everything that it
# relies on is checked here.


def _check_forest(forest: Forest) -> None:
    """All that the kernels of :mod:`damvi.voters.trees.forest` take for granted.

    The vote of a leaf is not stored but read off its weights, so it names a class that
    there is.
    """
    weights, n = forest.weights, len(forest.nodes)
    require(isinstance(weights, np.ndarray), "weights is no array")
    require(has_shape(weights, (n, None)), f"weights has the shape {weights.shape}")
    require_array(forest.nodes, np.int32, (None, NODE_COLUMNS), "nodes")
    require_array(forest.sets, np.uint8, (None, SET_BYTES), "sets")
    require_array(weights, trees_of(weights.shape[1]).weight_type, (n, None), "weights")
    require(2 <= weights.shape[1] <= MAX_CLASSES, "weights of no known classes")
    require_array(forest.rows, np.int32, (n,), "rows")
    require_starts(forest.roots, None, n, 1, "roots")
    require_starts(forest.set_starts, len(forest), len(forest.sets), 0, "set_starts")
    require_array(forest.importances, np.float64, (len(forest), None), "importances")
    require(np.isfinite(forest.importances).all(), "importances are not finite")
    require(((weights >= 0) & (weights <= MOST_WEIGHT)).all(), "weights out of range")
    require((weights.sum(axis=1, dtype=np.int64) > 0).all(), "nodes without weight")
    require((forest.rows > 0).all(), "nodes without rows")
    feature, shift, threshold = forest.feature, forest.shift, forest.threshold
    n_features = forest.importances.shape[1]
    require(((feature >= 0) & (feature < n_features)).all(), "features out of range")
    require(np.isin(shift, (0, 1, CATEGORIES)).all(), "unknown kinds of splits")
    sizes = np.diff(forest.roots)
    n_sets = np.repeat(np.diff(forest.set_starts), sizes)
    most = np.where(shift == CATEGORIES, n_sets, N_CODES)
    require(((threshold >= 0) & (threshold < most)).all(), "thresholds out of range")
    is_leaf = forest.is_leaf
    ends = (shift[is_leaf] != CATEGORIES) & (threshold[is_leaf] == N_CODES - 1)
    require(ends.all(), "leaves that send rows on")
    roots = np.repeat(forest.roots[:-1], sizes)
    left = forest.left.astype(np.int64) + roots
    require_family(left, left + 1, ~is_leaf, forest.roots)
    require_depth(left, left + 1, ~is_leaf, forest.roots)


def _check_binning(binning: Binning) -> None:
    """All that :func:`damvi.voters.trees.binning.encode` takes for granted."""
    cuts, starts = binning.cuts, binning.starts
    require_array(cuts, np.float64, (None,), "cuts")
    require_starts(starts, None, len(cuts), 0, "cuts' starts")
    sizes = np.diff(starts)
    n_features = len(sizes)
    require_array(binning.category_codes, np.uint8, (len(cuts),), "category codes")
    require_array(binning.categorical, np.uint8, (n_features,), "categorical")
    require_array(binning.n_codes, np.int64, (n_features,), "numbers of codes")
    require(not np.isnan(cuts).any(), "cuts are NaN")
    rises = np.ones(len(cuts), dtype=bool)
    rises[1:] = cuts[1:] > cuts[:-1]
    rises[starts[:-1][sizes > 0]] = True
    require(rises.all(), "cuts out of order")
    named = binning.categorical == 1
    require((named | (binning.categorical == 0)).all(), "categorical is not 0 or 1")
    require((sizes[~named] < MAX_BINS).all(), "too many cuts")
    require((binning.n_codes[~named] == sizes[~named] + 2).all(), "codes do not add up")
    n_codes = binning.n_codes
    require(((n_codes >= 1) & (n_codes <= N_CODES)).all(), "numbers of codes out of range")
    most = np.repeat(n_codes, sizes)
    require((binning.category_codes < most).all(), "category codes out of range")


def _check_features(features: Features) -> None:
    """One column of categories for each of the bins."""
    require(isinstance(features.binning, Binning), "no bins")
    known = features.categories
    if known is None:
        return
    require(isinstance(known, Categories), "categories of no known kind")
    columns = known.by_column
    require(
        isinstance(columns, tuple) and len(columns) == len(features), "categories missing"
    )
    _check_categories(known)


def _check_categories(categories: Categories) -> None:
    """Whole numbers for the categories of each column."""
    require(isinstance(categories.by_column, tuple), "categories of no known kind")
    for column in categories.by_column:
        if isinstance(column, HashedCategories):  # checked when it was read
            continue
        require(column is None or isinstance(column, dict), "categories of no known kind")
        numbers = [] if column is None else list(column.values())
        require(
            all(type(number) is int for number in numbers), "categories without numbers"
        )
        require(all(0 <= number < 2**31 for number in numbers), "categories out of range")


def _check_hashed(categories: HashedCategories) -> None:
    """As many buckets as there are codes for."""
    n = categories.n_buckets
    require(type(n) is int and 1 <= n < MAX_BINS, "buckets out of range")


def _check_hashes(hashes: Any) -> None:
    """Of categories: they are found by halving."""
    require_array(hashes, np.uint64, (None,), "hashes")
    require((hashes[1:] > hashes[:-1]).all(), "hashes out of order")


def check_voters(voters: TreeVoters) -> None:
    """Trees, and the features that they look at."""
    require(isinstance(voters.tree, FastTreeClassifier), "no options")
    require(isinstance(voters.features, Features), "no features")
    require(isinstance(voters.forest, Forest), "no nodes")
    require(
        voters.forest.importances.shape[1] == len(voters.features),
        "they look at other features than there are",
    )


def _check_model(model: Any) -> None:
    """A forest or tree as a classifier; one that is not fitted has nothing to check."""
    voters = vars(model).get("trees_")
    if voters is None:
        return
    require(isinstance(voters, TreeVoters), "no trees")
    classes = vars(model).get("classes_")
    shape = (voters.n_classes,)
    require(isinstance(classes, np.ndarray) and classes.shape == shape, "other classes")
    require(model.n_features_in_ == len(voters.features), "another number of features")


CHECKS: dict[str, Callable[[Any], None]] = {
    "BetaCurve": _check_beta,
    "Binning": _check_binning,
    "Calibrator": _check_calibrator,
    "ClassCurves": _check_class_curves,
    "DummyClassifier": _check_dummy,
    "FastForestClassifier": _check_model,
    "FastTreeClassifier": _check_model,
    "Features": _check_features,
    "Forest": _check_forest,
    "Isotonic": _check_isotonic,
    "Knots": _check_knots,
    "Line": _check_line,
    "OneHotEncoder": _check_encoder,
    "OrdinalEncoder": _check_encoder,
    "Platt": _check_line,
    "ProbabilityCurve": _check_probability_curve,
    "Categories": _check_categories,
    "HashedCategories": _check_hashed,
    "Levels": _check_levels,
    "Words": _check_words,
    "QuantileTransformer": _check_quantiles,
    "PairColumns": _check_pairs,
    "RankScaler": _check_ranks,
    "RankSplines": _check_splines,
    "RateEncoder": _check_rate_encoder,
    "Rates": _check_rates,
    "Relabelled": _check_relabelled,
    "TreeVoters": check_voters,
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
        require(isinstance(state.get("statistics_"), np.ndarray), "no statistics_")
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
        require(whole, f"{name}.{one} is {str(made)[:40]}")
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
