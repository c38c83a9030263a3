"""The built-in trees in a model file, and what their arrays must be like.

The kernels that ask the trees check no index, so everything that they rely on is checked
once here: a file may come from anyone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..voters.trees.binning import MAX_BINS, Binning
from ..voters.trees.estimators import MAX_CLASSES, FastTreeClassifier
from ..voters.trees.features import Categories, Features
from ..voters.trees.forest import CATEGORIES, N_CODES, NODE_COLUMNS, SET_BYTES, Forest
from ..voters.trees.voters import TreeVoters
from .errors import ModelFileError
from .values import Json, Reader, Writer

FAST_TREE = "damvi.voters.trees.estimators.FastTreeClassifier"
MOST_WEIGHT = 2**62


def is_fast_tree(value: Any) -> bool:
    """Whether it is the built-in tree as a classifier."""
    return type(value) is FastTreeClassifier


def write_fast_tree(writer: Writer, tree: FastTreeClassifier) -> dict[str, Json]:
    """Its attributes, without the circle from its trees back to itself."""
    state = dict(vars(tree))
    state.pop("_metadata_request", None)
    voters = state.pop("trees_", None)
    grown = {} if voters is None else {"features": voters.features, "forest": voters.forest}
    return {"state": writer.state(state), "grown": writer.state(grown)}


def read_fast_tree(reader: Reader, said: dict[str, Json]) -> FastTreeClassifier:
    """The tree that was written."""
    tree = FastTreeClassifier()
    tree.__dict__.update(reader.state(said["state"]))
    grown = reader.state(said["grown"])
    if grown:
        tree.trees_ = TreeVoters(tree, grown["features"], grown["forest"])
        check_voters(tree.trees_)
    return tree


def need(condition: Any, complaint: str) -> None:
    """Refuse the file unless the condition holds."""
    if not condition:
        raise ModelFileError(f"its trees are broken: {complaint}")


def need_array(array: Any, dtype: Any, shape: tuple[int | None, ...], name: str) -> None:
    """An array of this type and shape (None is any number), laid out row by row."""
    need(isinstance(array, np.ndarray), f"{name} is no array")
    need(array.dtype == dtype, f"{name} is of {array.dtype}, not {np.dtype(dtype)}")
    fits = array.ndim == len(shape) and all(
        wanted in (None, there) for wanted, there in zip(shape, array.shape, strict=True)
    )
    need(fits, f"{name} has the shape {array.shape}")
    need(array.flags.c_contiguous, f"{name} is laid out by columns")


def need_starts(starts: Any, parts: int | None, end: int, least: int, name: str) -> None:
    """Where parts start in a list of ``end`` items, each of ``least`` or more."""
    need_array(starts, np.int64, (None if parts is None else parts + 1,), name)
    need(len(starts) > 1 and starts[0] == 0 and starts[-1] == end, f"{name} do not add up")
    # Compared, since differences could overflow.
    need((starts[1:] >= starts[:-1]).all(), f"{name} go back")
    need((np.diff(starts) >= least).all(), f"{name} leave parts empty")


def check_forest(forest: Forest) -> None:
    """All that the kernels of :mod:`damvi.voters.trees.forest` take for granted.

    The vote of a leaf is not stored but read off its weights, so it names a class that
    there is.
    """
    need(isinstance(forest.weights, np.ndarray), "weights is no array")
    n = len(forest.nodes)
    need_array(forest.nodes, np.int32, (None, NODE_COLUMNS), "nodes")
    need_array(forest.sets, np.uint8, (None, SET_BYTES), "sets")
    two = forest.weights.ndim == 2 and forest.weights.shape[1] == 2
    need_array(forest.weights, np.int64 if two else np.int32, (n, None), "weights")
    need(2 <= forest.weights.shape[1] <= MAX_CLASSES, "weights of no known classes")
    need_array(forest.rows, np.int32, (n,), "rows")
    need_starts(forest.roots, None, n, 1, "roots")
    need_starts(forest.set_starts, len(forest), len(forest.sets), 0, "set_starts")
    need_array(forest.importances, np.float64, (len(forest), None), "importances")
    need(np.isfinite(forest.importances).all(), "importances are not finite")
    weights = forest.weights
    need(((weights >= 0) & (weights <= MOST_WEIGHT)).all(), "weights out of range")
    need((weights.sum(axis=1, dtype=np.int64) > 0).all(), "nodes without weight")
    need((forest.rows > 0).all(), "nodes without rows")
    feature, shift, threshold = forest.feature, forest.shift, forest.threshold
    n_features = forest.importances.shape[1]
    need(((feature >= 0) & (feature < n_features)).all(), "features out of range")
    need(np.isin(shift, (0, 1, CATEGORIES)).all(), "unknown kinds of splits")
    sizes = np.diff(forest.roots)
    n_sets = np.repeat(np.diff(forest.set_starts), sizes)
    most = np.where(shift == CATEGORIES, n_sets, N_CODES)
    need(((threshold >= 0) & (threshold < most)).all(), "thresholds out of range")
    is_leaf = forest.is_leaf
    ends = (shift[is_leaf] != CATEGORIES) & (threshold[is_leaf] == N_CODES - 1)
    need(ends.all(), "leaves that send rows on")
    roots = np.repeat(forest.roots[:-1], sizes)
    left = forest.left.astype(np.int64) + roots
    need_family(left, left + 1, ~is_leaf, forest.roots)


def need_family(
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
    need((children > parents).all(), "children before their parents")
    need((children < np.tile(last[inner], 2)).all(), "children outside of their tree")
    born = np.bincount(children, minlength=n)
    born[roots[:-1]] += 1
    need((born == 1).all(), "nodes with no parent, or with two")


def check_binning(binning: Binning) -> None:
    """All that :func:`damvi.voters.trees.binning.encode` takes for granted."""
    cuts, starts = binning.cuts, binning.starts
    need_array(cuts, np.float64, (None,), "cuts")
    need_starts(starts, None, len(cuts), 0, "cuts' starts")
    sizes = np.diff(starts)
    n_features = len(sizes)
    need_array(binning.category_codes, np.uint8, (len(cuts),), "category codes")
    need_array(binning.categorical, np.uint8, (n_features,), "categorical")
    need_array(binning.n_codes, np.int64, (n_features,), "numbers of codes")
    need(not np.isnan(cuts).any(), "cuts are NaN")
    rises = np.ones(len(cuts), dtype=bool)
    rises[1:] = cuts[1:] > cuts[:-1]
    rises[starts[:-1][sizes > 0]] = True
    need(rises.all(), "cuts out of order")
    named = binning.categorical == 1
    need((named | (binning.categorical == 0)).all(), "categorical is not 0 or 1")
    need((sizes[~named] < MAX_BINS).all(), "too many cuts")
    need((binning.n_codes[~named] == sizes[~named] + 2).all(), "codes do not add up")
    n_codes = binning.n_codes
    need(((n_codes >= 1) & (n_codes <= N_CODES)).all(), "numbers of codes out of range")
    most = np.repeat(n_codes, sizes)
    need((binning.category_codes < most).all(), "category codes out of range")


def check_features(features: Features) -> None:
    """One column of categories for each of the bins."""
    need(isinstance(features.binning, Binning), "no bins")
    known = features.categories
    if known is None:
        return
    need(isinstance(known, Categories), "categories of no known kind")
    columns = known.by_column
    need(isinstance(columns, tuple) and len(columns) == len(features), "categories missing")
    for column in columns:
        need(column is None or isinstance(column, dict), "categories of no known kind")
        numbers = [] if column is None else list(column.values())
        need(all(type(number) is int for number in numbers), "categories without numbers")
        need(all(0 <= number < 2**31 for number in numbers), "categories out of range")


def check_voters(voters: TreeVoters) -> None:
    """Trees, and the features that they look at."""
    need(isinstance(voters.tree, FastTreeClassifier), "no options")
    need(isinstance(voters.features, Features), "no features")
    need(isinstance(voters.forest, Forest), "no nodes")
    need(
        voters.forest.importances.shape[1] == len(voters.features),
        "they look at other features than there are",
    )


def check_model(model: Any) -> None:
    """A forest or tree as a classifier; one that is not fitted has nothing to check."""
    voters = vars(model).get("trees_")
    if voters is None:
        return
    need(isinstance(voters, TreeVoters), "no trees")
    classes = vars(model).get("classes_")
    shape = (voters.n_classes,)
    need(isinstance(classes, np.ndarray) and classes.shape == shape, "other classes")
    need(model.n_features_in_ == len(voters.features), "another number of features")


def check_steps(steps: Any) -> None:
    """The knots of a calibrator."""
    need_array(steps.votes, np.float32, (None,), "votes")
    need_array(steps.calibrated, np.float64, (len(steps.votes),), "calibrated votes")
    need(len(steps.votes) > 0 and np.isfinite(steps.calibrated).all(), "no knots")
    need((np.diff(steps.votes) > 0).all(), "knots out of order")
