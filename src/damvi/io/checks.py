"""Validate the objects in a model file: parameters, curves, trees and columns.

A file may come from anyone, so each object is checked once, when it is read; predictions
then need no checks. Trees of other libraries have further checks in their own modules, by
the functions at the start of this one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin

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
from ..validation import Categories, HashedCategories
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
from ..voters.portfolio import N_HASHES, CategoryBoostingClassifier, NetworksClassifier
from ..voters.trees.binning import MAX_BINS, Binning, Features
from ..voters.trees.estimators import MAX_CLASSES, FastTreeClassifier, TreeVoters
from ..voters.trees.forest import (
    CATEGORIES,
    N_CODES,
    NODE_COLUMNS,
    SET_BYTES,
    Forest,
    trees_of,
)

Parts = dict[str, Any]
"""Columns of the trees of a model, concatenated over all trees."""
Column = tuple[str, Any]
"""Name and dtype of one of them."""
MOST_FEATURES = 2**24
NUMBERS = (type(None), bool, int, float, np.bool_, np.integer, np.floating)
MOST_WEIGHT = 2**62
DEEPEST = 4096
"""Maximum depth of a tree."""
LARGEST = 1e100
"""Maximum magnitude of a curve's numbers; sums and products of a few stay finite."""
LARGEST_OF_WORDS = 1e6
"""Weights are logarithms, and directions have length 1."""
ROUNDING = 1e-12
"""Tolerance for sorted mean votes that differ in the last bit."""


class ModelFileError(ValueError):
    """A file is not a model, is damaged, or cannot be used here; see the message.

    Also raised on save, for a model that cannot be stored.
    """


def require(condition: Any, complaint: str) -> None:
    """Reject the file unless the condition holds."""
    if not condition:
        raise ModelFileError(f"invalid content: {complaint}")


def require_array(array: Any, dtype: Any, shape: tuple[int | None, ...], name: str) -> None:
    """Require a C-contiguous array of this dtype and shape (None matches any size)."""
    require(isinstance(array, np.ndarray), f"{name} is not an array")
    require(array.dtype == dtype, f"{name} has dtype {array.dtype}, not {np.dtype(dtype)}")
    require(has_shape(array, shape), f"{name} has shape {array.shape}")
    require(array.flags.c_contiguous, f"{name} is not C-contiguous")


def has_shape(array: NDArray[Any], shape: tuple[int | None, ...]) -> bool:
    """Whether the array has this shape; None matches any size."""
    sizes = zip(shape, array.shape, strict=False)
    return array.ndim == len(shape) and all(want in (None, n) for want, n in sizes)


def require_starts(starts: Any, parts: int | None, end: int, least: int, name: str) -> None:
    """Require start offsets of parts, each with ``least`` or more of ``end`` items."""
    require_array(starts, np.int64, (None if parts is None else parts + 1,), name)
    require(
        len(starts) > 1 and starts[0] == 0 and starts[-1] == end, f"{name} do not add up"
    )
    # Compare first, since differences could overflow.
    require((starts[1:] >= starts[:-1]).all(), f"{name} are not increasing")
    require((np.diff(starts) >= least).all(), f"{name} leave parts empty")


def require_family(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    inner: NDArray[np.bool_],
    roots: NDArray[np.int64],
) -> None:
    """Require children after their parents, in the same tree, and one parent per node."""
    n = len(left)
    last = np.repeat(roots[1:], np.diff(roots))
    children = np.concatenate([left[inner], right[inner]])
    parents = np.tile(np.flatnonzero(inner), 2)
    require((children > parents).all(), "children before their parents")
    require((children < np.tile(last[inner], 2)).all(), "children outside their tree")
    born = np.bincount(children, minlength=n)
    born[roots[:-1]] += 1
    require((born == 1).all(), "nodes without exactly one parent")


def require_depth(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    inner: NDArray[np.bool_],
    roots: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the depth of each tree; reject trees that are too deep.

    Some kernels and libraries use memory or stack for each level.
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


def require_int(value: Any, least: int, most: int, what: str) -> int:
    is_whole = type(value) is int and least <= value <= most
    require(is_whole, f"{what} {str(value)[:40]}")
    return int(value)


def require_counts(
    counts: Any, end: int, least: int, what: str, n: int | None = None
) -> NDArray[np.int64]:
    """Check ``n`` item counts that must add up to ``end``; return the start offsets.

    If ``n`` is None, there may be any number of counts but none.
    """
    require_array(counts, np.int64, (n,), what)
    require(n is not None or len(counts) > 0, f"no {what}")
    require(((counts >= least) & (counts <= end)).all(), f"{what} out of range")
    require(sum(counts.tolist()) == end, f"{what} do not add up")
    return np.append(0, np.cumsum(counts))


def require_columns(
    parts: Parts, columns: list[Column], n: int, free: Collection[str] = ()
) -> None:
    """Check columns of ``n`` entries; all must be finite except those in ``free``."""
    for name, dtype in columns:
        require_array(parts[name], dtype, (n,), name)
        if np.dtype(dtype).kind == "f" and name not in free:
            require(np.isfinite(parts[name]).all(), f"{name} has numbers out of range")


def require_names(names: Any, n: int) -> None:
    require(isinstance(names, list) and len(names) == n, "feature names")
    require(all(type(name) is str for name in names), "feature names")


def require_labels(classes: Any, n: int) -> None:
    """Check that there are labels for ``n`` classes."""
    ok = isinstance(classes, np.ndarray) and classes.shape == (n,)
    require(ok and classes.dtype.kind in "biufUO", "wrong number of classes")
    require(all(isinstance(one, (str, *NUMBERS[1:])) for one in classes), "classes")
    require(len(set(classes.tolist())) == n, "duplicate classes")


def split(column: NDArray[Any], starts: NDArray[np.int64]) -> list[NDArray[Any]]:
    return np.split(column, starts[1:-1])


# Parameters.


def check_params(model: Any) -> None:
    """Check all constructor parameters against what the class allows.

    Predictions use them too: scikit-learn derives an estimator's tags from them. The number
    of processes and the location of caches are ours, not the file's.
    """
    cls, given = type(model), vars(model)
    if "memory" in given:
        given["memory"] = None
    n_jobs, cpus = given.get("n_jobs"), os.cpu_count() or 1
    if isinstance(n_jobs, int) and abs(n_jobs) > cpus:
        given["n_jobs"] = cpus if n_jobs > 0 else -1
    missing = sorted(set(signature(cls).parameters) - vars(model).keys())
    require(not missing, f"{cls.__name__} lacks {', '.join(missing)[:200]}")
    try:
        if hasattr(model, "_parameter_constraints"):
            model._validate_params()  # as its fit would
    except (TypeError, ValueError) as error:
        # The given value comes last in the message, and may be long.
        asked = str(error).partition(" Got ")[0].replace("\n", " ")
        raise ModelFileError(f"invalid parameters: {asked[:300]}") from error


# Classifiers, and sorted arrays that are searched.


def check_classes(state: dict[str, Any]) -> None:
    """Check that classes are sorted and match their declared number."""
    known: Any = state.get("classes_")
    n_classes = state.get("n_classes_")
    if n_classes is not None:
        require(np.shape(known) == (n_classes,), "wrong number of classes")
    if isinstance(known, np.ndarray) and known.ndim == 1:
        require((known[1:] > known[:-1]).all(), "classes out of order")


def _check_dummy(model: Any) -> None:
    """Check a constant classifier, which allocates memory for its declared classes."""
    state = vars(model)
    if "classes_" in state:
        shape = np.shape(state["classes_"])
        known = len(shape) == 1 and shape == np.shape(state["class_prior_"])
        require(known and state["n_classes_"] == shape[0], "wrong number of classes")
        require(state["n_outputs_"] == 1, "more than one output")


def _check_relabelled(model: Relabelled) -> None:
    """Check that its classes match the codes 0, 1, ... of the inner classifier."""
    known: Any = vars(model).get("classes_")
    require(_is_column(known, None, "biuf"), "unknown kind of classes")
    inner = np.asarray(getattr(model.estimator, "classes_", np.arange(len(known))))
    require(np.array_equal(inner, np.arange(len(known))), "wrong number of classes")


def _check_encoder(encoder: Any) -> None:
    """Check that numeric categories are sorted, for binary search; NaN is last."""
    known = vars(encoder).get("categories_")
    if known is None:
        return
    require(isinstance(known, list), "unknown kind of categories")
    for own in known:
        array = isinstance(own, np.ndarray) and own.ndim == 1
        require(array and own.dtype.kind in "biufUSO", "unknown kind of categories")
        if own.dtype.kind in "biuf":
            require(_rises(own), "categories out of order")
        else:
            require(len(set(own.tolist())) == len(own), "duplicate categories")


def _check_ranks(scaler: RankScaler) -> None:
    knots = vars(scaler).get("knots_")
    if knots is None:
        return
    require(isinstance(knots, list), "knots are not a list")
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
    require_array(model.pairs_, np.int64, (None, 2), "column pairs")
    n: Any = state.get("n_features_in_")
    require(type(n) is int, "column pairs without a number of columns")
    in_range = ((model.pairs_ >= 0) & (model.pairs_ < n)).all()
    require(in_range and len(model.pairs_) <= n * n, "column pairs out of range")


def _check_networks(model: NetworksClassifier) -> None:
    state = vars(model)
    if "hidden_" not in state:
        return
    for name in ("hidden_", "output_"):
        layer = state.get(name)
        require(isinstance(layer, tuple) and len(layer) == 2, f"{name} is no layer")
    (into, start), (out, end) = model.hidden_, model.output_
    require_array(into, np.float64, (None, model.n_features_in_, None), "hidden_")
    k, _, n_units = into.shape
    n_classes = len(model.classes_)
    require(k > 0 and n_units > 0, "networks without units")
    require_array(start, np.float64, (k, n_units), "hidden_")
    require_array(out, np.float64, (k, n_units, n_classes), "output_")
    require_array(end, np.float64, (k, n_classes), "output_")
    for one in (into, start, out, end):
        require(np.isfinite(one).all(), "networks have weights that are not finite")


def _check_category_boosting(model: CategoryBoostingClassifier) -> None:
    state = vars(model)
    if "estimator_" not in state:
        return
    encoder, trees = model.encoder_, model.estimator_
    require(isinstance(encoder, NumberEncoder), "missing encoder")
    require(isinstance(encoder.categories_, Categories | None), "missing encoder")
    require(type(trees).__name__ == "CatBoostClassifier", "missing trees")
    require(trees.is_fitted(), "missing trees")
    require(np.array_equal(model.classes_, trees.classes_), "wrong classes")
    require(model.categorical == trees.get_cat_feature_indices(), "wrong categories")


def _check_levels(levels: Levels) -> None:
    _check_hashes(levels.hashes)
    n = len(levels.hashes)
    require_array(levels.counts, np.uint32, (n,), "level counts")
    require((levels.counts > 0).all(), "levels without rows")


def _check_words(words: Words) -> None:
    require_array(words.weights, np.float32, (2 * N_BUCKETS,), "word weights")
    shape = (2 * N_BUCKETS, None)
    require_array(words.directions, np.float32, shape, "word directions")
    require(1 <= words.directions.shape[1] <= N_DIRECTIONS, "word directions")
    for numbers in (words.weights, words.directions):
        require((np.abs(numbers) <= LARGEST_OF_WORDS).all(), "word weights out of range")


def _check_rates(rates: Rates) -> None:
    """Check for one row of rates per hash, one for missing values and one for the rest."""
    _check_hashes(rates.hashes)
    shape = (len(rates.hashes) + 2, None)
    require_array(rates.rates, np.float64, shape, "rates")
    within = (rates.rates >= 0) & (rates.rates <= 1)
    require(rates.rates.shape[1] > 0 and within.all(), "rates out of range")


def _check_rate_encoder(encoder: RateEncoder) -> None:
    known: Any = vars(encoder).get("rates_", {})
    require(isinstance(known, dict), "unknown kind of rates")
    require(all(isinstance(one, Rates) for one in known.values()), "unknown kind of rates")
    widths = {one.rates.shape[1] for one in known.values()}
    require(len(widths) < 2, "inconsistent rates")


def _check_quantiles(scaler: Any) -> None:
    state = vars(scaler)
    if "quantiles_" not in state:
        return
    quantiles, references = state["quantiles_"], state.get("references_")
    require(_is_column(references) and _rises(references), "references_ out of order")
    shape = (len(references), None)
    is_table = isinstance(quantiles, np.ndarray) and has_shape(quantiles, shape)
    require(is_table and quantiles.dtype.kind == "f", "unknown kind of quantiles_")
    # A column of missing values is all NaN.
    falls = quantiles[1:] < quantiles[:-1]
    some = np.isnan(quantiles)
    require(not falls.any(), "quantiles_ out of order")
    require((some.all(axis=0) | ~some.any(axis=0)).all(), "quantiles_ with gaps")


def _is_column(value: Any, n: int | None = None, kinds: str = "f") -> bool:
    """Whether it is a 1-d array of these dtypes, of length ``n`` if given."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
        return False
    return has_shape(value, (n,))


def _rises(values: NDArray[Any]) -> bool:
    """Whether values are strictly increasing; the last may be NaN."""
    if len(values) > 1 and values[-1] != values[-1]:
        values = values[:-1]
    return bool((values[1:] > values[:-1]).all())


# Calibration curves: finite, nondecreasing, and within their range.


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
    require(max(curve.low, curve.high) <= 0.5, "BetaCurve limits out of range")


def _check_knots(curve: Knots) -> None:
    for name in ("votes", "log_odds"):
        values = getattr(curve, name)
        require(isinstance(values, tuple) and len(values) > 0, f"knots without {name}")
        numbers = all(isinstance(v, float) and abs(v) <= LARGEST for v in values)
        require(numbers, f"knot {name} are not finite")
        falls = np.diff(values) < -ROUNDING * np.abs(values).max()
        require(not falls.any(), f"knot {name} out of order")
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
    require(known, "unknown kind of class curves")
    require(all(map(is_vote_curve, curves.curves)), "unknown kind of curves")


def is_vote_curve(curve: Any) -> bool:
    """Whether it calibrates a voter's votes for one class against the rest."""
    return isinstance(curve, (Platt, Isotonic))


def _check_probability_curve(curve: ProbabilityCurve) -> None:
    known = isinstance(curve.log_odds, (Line, BetaCurve, Knots))
    require(known and isinstance(curve.method, str), "unknown kind of curve")
    _require_numbers(curve, "shift")
    _require_numbers(curve, "scale", least=1.0)


def _check_calibrator(calibrator: Calibrator) -> None:
    curves = calibrator.curves
    known = isinstance(curves, tuple) and len(curves) > 0
    curved = known and all(isinstance(one, ProbabilityCurve) for one in curves)
    require(curved, "a calibrator without curves")


# Built-in trees. Compiled kernels check no index, so everything that they rely on is
# checked here.


def _check_forest(forest: Forest) -> None:
    """Check everything that the kernels of :mod:`damvi.voters.trees.forest` assume.

    The vote of a leaf is derived from its weights, not stored, so it is a valid class.
    """
    weights, n = forest.weights, len(forest.nodes)
    require(isinstance(weights, np.ndarray), "weights is not an array")
    require(has_shape(weights, (n, None)), f"weights has shape {weights.shape}")
    require_array(forest.nodes, np.int32, (None, NODE_COLUMNS), "nodes")
    require_array(forest.sets, np.uint8, (None, SET_BYTES), "sets")
    require_array(weights, trees_of(weights.shape[1]).weight_type, (n, None), "weights")
    require(2 <= weights.shape[1] <= MAX_CLASSES, "wrong number of classes")
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
    require(np.isin(shift, (0, 1, CATEGORIES)).all(), "unknown kind of splits")
    sizes = np.diff(forest.roots)
    n_sets = np.repeat(np.diff(forest.set_starts), sizes)
    most = np.where(shift == CATEGORIES, n_sets, N_CODES)
    require(((threshold >= 0) & (threshold < most)).all(), "thresholds out of range")
    is_leaf = forest.is_leaf
    ends = (shift[is_leaf] != CATEGORIES) & (threshold[is_leaf] == N_CODES - 1)
    require(ends.all(), "leaves with children")
    roots = np.repeat(forest.roots[:-1], sizes)
    left = forest.left.astype(np.int64) + roots
    require_family(left, left + 1, ~is_leaf, forest.roots)
    require_depth(left, left + 1, ~is_leaf, forest.roots)


def _check_binning(binning: Binning) -> None:
    """Check everything that :func:`damvi.voters.trees.binning.encode` assumes."""
    cuts, starts = binning.cuts, binning.starts
    require_array(cuts, np.float64, (None,), "cuts")
    require_starts(starts, None, len(cuts), 0, "cut offsets")
    sizes = np.diff(starts)
    n_features = len(sizes)
    require_array(binning.category_codes, np.uint8, (len(cuts),), "category codes")
    require_array(binning.categorical, np.uint8, (n_features,), "categorical")
    require_array(binning.n_codes, np.int64, (n_features,), "code counts")
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
    require(((n_codes >= 1) & (n_codes <= N_CODES)).all(), "code counts out of range")
    most = np.repeat(n_codes, sizes)
    require((binning.category_codes < most).all(), "category codes out of range")


def _check_features(features: Features) -> None:
    """Check for one set of categories per feature."""
    require(isinstance(features.binning, Binning), "no bins")
    known = features.categories
    if known is None:
        return
    require(isinstance(known, Categories), "unknown kind of categories")
    columns = known.by_column
    require(
        isinstance(columns, tuple) and len(columns) == len(features), "missing categories"
    )
    _check_categories(known)
    hashed = [own for own in columns if isinstance(own, HashedCategories)]
    require(all(own.n_buckets < MAX_BINS for own in hashed), "buckets out of range")


def _check_categories(categories: Categories) -> None:
    """Check that categories map to integer codes."""
    require(isinstance(categories.by_column, tuple), "unknown kind of categories")
    for column in categories.by_column:
        if isinstance(column, HashedCategories):  # checked when read
            continue
        require(column is None or isinstance(column, dict), "unknown kind of categories")
        numbers = [] if column is None else list(column.values())
        require(all(type(number) is int for number in numbers), "categories without codes")
        require(all(0 <= number < 2**31 for number in numbers), "categories out of range")


def _check_hashed(categories: HashedCategories) -> None:
    """Check the number of hash buckets."""
    n = categories.n_buckets
    require(type(n) is int and 1 <= n <= N_HASHES, "buckets out of range")


def _check_hashes(hashes: Any) -> None:
    """Check that the hashes of categories are sorted, for binary search."""
    require_array(hashes, np.uint64, (None,), "hashes")
    require((hashes[1:] > hashes[:-1]).all(), "hashes out of order")


def check_voters(voters: TreeVoters) -> None:
    """Check trees and the features that they use."""
    require(isinstance(voters.tree, FastTreeClassifier), "missing options")
    require(isinstance(voters.features, Features), "missing features")
    require(isinstance(voters.forest, Forest), "missing nodes")
    require(
        voters.forest.importances.shape[1] == len(voters.features),
        "the trees use other features than there are",
    )


def _check_model(model: Any) -> None:
    """Check a forest or tree classifier, unless it is not fitted."""
    voters = vars(model).get("trees_")
    if voters is None:
        return
    require(isinstance(voters, TreeVoters), "missing trees")
    classes = vars(model).get("classes_")
    shape = (voters.n_classes,)
    require(
        isinstance(classes, np.ndarray) and classes.shape == shape,
        "wrong number of classes",
    )
    require(model.n_features_in_ == len(voters.features), "wrong number of features")


CHECKS: dict[str, Callable[[Any], None]] = {
    "BetaCurve": _check_beta,
    "Binning": _check_binning,
    "Calibrator": _check_calibrator,
    "Categories": _check_categories,
    "CategoryBoostingClassifier": _check_category_boosting,
    "ClassCurves": _check_class_curves,
    "DummyClassifier": _check_dummy,
    "FastForestClassifier": _check_model,
    "FastTreeClassifier": _check_model,
    "Features": _check_features,
    "Forest": _check_forest,
    "HashedCategories": _check_hashed,
    "Isotonic": _check_isotonic,
    "Knots": _check_knots,
    "Levels": _check_levels,
    "Line": _check_line,
    "NetworksClassifier": _check_networks,
    "OneHotEncoder": _check_encoder,
    "OrdinalEncoder": _check_encoder,
    "PairColumns": _check_pairs,
    "Platt": _check_line,
    "ProbabilityCurve": _check_probability_curve,
    "QuantileTransformer": _check_quantiles,
    "RankScaler": _check_ranks,
    "RankSplines": _check_splines,
    "RateEncoder": _check_rate_encoder,
    "Rates": _check_rates,
    "Relabelled": _check_relabelled,
    "TreeVoters": check_voters,
    "Words": _check_words,
}
"""By class name."""


# The number of columns between steps.

BY_COLUMN = ("center_", "max_abs_", "mean_", "min_", "scale_", "statistics_", "var_")
"""Attributes of transformers with one entry per input column."""
MADE = ("_max_components", "_n_features_out")
"""Number of output columns of a discriminant analysis, at most that of its input. Feature
names are generated for them, so a file must not choose a huge number."""


def check_width(model: Any, n_in: int | None) -> int | None:
    """Reject an estimator that expects other columns than it gets; return its output width.

    None if unknown, as for classifiers and unlisted transformers.
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
    if isinstance(model, CategoryBoostingClassifier) and "estimator_" in state:
        return check_width(model.estimator_, check_width(model.encoder_, n_in))
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
        return expected  # avoids generating names
    for one in MADE:
        made = state.get(one, 0)
        whole = isinstance(made, (int, np.integer)) and 0 <= made <= expected
        require(whole, f"{name}.{one} is {str(made)[:40]}")
    return len(model.get_feature_names_out())


def _columns_in(model: Any) -> int | None:
    try:
        n = model.n_features_in_
    except Exception:  # not fitted, or not applicable
        return None
    return int(n) if isinstance(n, (int, np.integer)) else None


def _same_width(name: str, given: int | None, expected: int | None) -> None:
    if given is not None and expected is not None and given != expected:
        raise ModelFileError(
            f"a voter's {name} expects {expected} columns, but gets {given}"
        )


def _check_columns(model: Any, n_in: int) -> int | None:
    """Check a ``ColumnTransformer``: its parts, and the position of their output."""
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
