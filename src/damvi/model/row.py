"""Fast predictions for single rows, for services.

A table of one row takes tens of milliseconds: frames are built and checked, voters wait for
threads, and each library validates its input. Here all of that is done once, and a row is
passed through as arrays. The operations on the numbers are the same, so the result is
identical to :meth:`damvi.Model.predict`. Voters without a fast path use their own
``predict_proba``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._kernels import kernel
from ..evaluation import FittedVote
from ..hashing import find_hashes, text_hashes
from ..io import ModelParts
from ..io.onnx_models import read_lightgbm
from ..tables.row import RowEncoder
from ..validation import Categories, HashedCategories, numbers_of
from ..voters import (
    CategoryBoostingClassifier,
    FastForestClassifier,
    PoolVoters,
    VoteReader,
)
from ..voters.columns import rate_names
from ..voters.estimators import Relabelled
from ..voters.trees.estimators import TreeVoters
from .prediction import Judge

Floats = NDArray[np.float64]
Labels = Sequence[Sequence[Any] | None]
"""The categories of each column, whose cells are codes; None for numbers."""
Step = Callable[[Floats], Any]


class Unknown(Exception):
    """There is no fast path."""


class RowPredictor:
    """Predicts one row at a time. Thread-safe.

    Parameters
    ----------
    model : ModelParts

    Examples
    --------
    >>> import numpy as np, pandas as pd, damvi
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"size": rng.normal(size=400), "shop": list("abcd") * 100})
    >>> table["late"] = np.where(table["size"] + rng.normal(size=400) > 2, "yes", "no")
    >>> ask = RowPredictor(damvi.fit(table, "late", pool="trees", random_state=0))
    >>> ask({"size": 2.8, "shop": "a"})["decision"]
    'yes'
    """

    def __init__(self, model: ModelParts) -> None:
        self._model, self._classifier = model, model.classifier
        self._fitted = FittedVote(model.classifier)
        self._own = Judge(model).own
        self._given = model.target.as_given()
        self.encode = RowEncoder(model.schema)
        self._weights, self._voters = self._classifier.weights_, self._classifier.voters_
        self.vote = self._voter()

    def _voter(self) -> Callable[[Floats, Mapping[str, Any]], Floats]:
        voters, weights, labels = self._voters, self._weights, self.encode.labels
        try:
            if isinstance(voters, TreeVoters):
                return _Trees(voters, weights, labels)
            if isinstance(voters, PoolVoters):
                names = self._model.schema.features
                return _Pool(voters, weights, labels, names, self._frame)
        except Unknown:
            pass
        return self._as_table

    def _frame(self, row: Mapping[str, Any]) -> Any:
        """The encoded row as a frame."""
        import pandas as pd

        return self._model.schema.encode(pd.DataFrame([dict(row)]))

    def _as_table(self, cells: Floats, row: Mapping[str, Any]) -> Floats:
        vote: Floats = self._classifier.vote(self._frame(row))
        return vote

    @property
    def is_current(self) -> bool:
        """Whether the voters and weights are unchanged: not reweighed or pruned."""
        found = self._classifier
        return found.weights_ is self._weights and found.voters_ is self._voters

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The result of :meth:`damvi.Model.predict` for a row, as plain values."""
        try:
            return self.of_cells(self.encode(row), row)
        except TypeError:
            if hasattr(row, "keys"):
                raise
            raise TypeError(
                f"a row must be a dictionary of column values, not {row!r:.60}; for "
                f"several rows, pass a table to predict"
            ) from None

    def of_cells(self, cells: Floats, row: Mapping[str, Any]) -> dict[str, Any]:
        """The same for an encoded row; ``row`` is for voters without a fast path."""
        vote = self.vote(cells, row)
        vote = np.clip(vote, *self._fitted.labels.vote_limits)
        chances, decided = self._fitted.decide(vote)
        values = {
            "score": vote.reshape(-1).tolist(),
            "probability": chances.reshape(-1).tolist(),
            "decision": [self._given[int(decided[0])]],
        }
        return {name: values[what][c] for name, (what, c) in self._own.items()}


# Cells in the form that the built-in trees and boosters expect.


class _Numbers:
    """Maps category codes to a voter's own numbers; numbers stay as they are."""

    def __init__(self, known: Categories | None, labels: Labels) -> None:
        by_column = [None] * len(labels) if known is None else known.by_column
        self.look_up = []
        for f, (own, names) in enumerate(zip(by_column, labels, strict=True)):
            if (own is None) != (names is None):
                raise Unknown
            if own is not None and names is not None:
                self.look_up.append((f, _numbers_by_code(own, names)))

    def __call__(self, cells: Floats) -> Floats:
        if not self.look_up:
            return cells
        numbers = cells.copy()
        for f, number in self.look_up:
            numbers[0, f] = number(int(cells[0, f]))
        return numbers


def _numbers_by_code(
    known: dict[Any, int] | HashedCategories, names: Sequence[Any]
) -> Callable[[int], float]:
    if isinstance(known, HashedCategories):
        return _Hashed(known, names)
    every = numbers_of(known, list(names), np.arange(len(names)))
    return [*every.tolist(), math.nan].__getitem__  # -1, for missing, is the last


class _Hashed:
    """The same for very many categories, each looked up on demand."""

    def __init__(self, known: HashedCategories, names: Sequence[Any]) -> None:
        self.known, self.names = known, names

    def __call__(self, code: int) -> float:
        if code < 0:
            return math.nan
        return float(self.known.numbers([self.names[code]], np.zeros(1, np.intp))[0])


class _Trees:
    """The weighted vote of the built-in trees."""

    def __init__(self, voters: TreeVoters, weights: Floats, labels: Labels) -> None:
        self.numbers = _Numbers(voters.features.categories, labels)
        asked = np.flatnonzero(weights)
        self.voters, self.weights = voters.take(asked), weights[asked]

    def __call__(self, cells: Floats, row: Mapping[str, Any]) -> Floats:
        return self.voters.weighted_vote_of_row(self.numbers(cells), self.weights)


# A pool: each voter as a chain of steps on cells, with a model at the end.


class _Pool:
    """The weighted vote of the models that have weight."""

    def __init__(
        self,
        voters: PoolVoters,
        weights: Floats,
        labels: Labels,
        names: list[str],
        frame: Callable[[Mapping[str, Any]], Any],
    ) -> None:
        if voters.voting != "soft":
            raise Unknown
        self.read, self.frame = VoteReader(voters.classes, voters.voting), frame
        asked = np.flatnonzero(weights)
        self.weights = weights[asked]
        curves: Sequence[Any] = voters.calibrators or [None] * len(voters)
        self.voters: list[tuple[Any, bool, Any]] = []
        for k in asked.tolist():
            voter, curve = voters.estimators[k], curves[k]
            try:
                self.voters.append((_model(voter, labels, names), True, curve))
            except (Unknown, ValueError):
                self.voters.append((voter, False, curve))

    def __call__(self, cells: Floats, row: Mapping[str, Any]) -> Floats:
        frame, votes = None, []
        for voter, takes_cells, curve in self.voters:
            if not takes_cells and frame is None:
                frame = self.frame(row)
            vote = self.read(voter, cells if takes_cells else frame)
            votes.append(vote if curve is None else curve(vote))
        return self.read.weighted_sum(votes, self.weights)


class _Chain:
    """A fitted pipeline on cells: the steps before the model, and the model."""

    def __init__(self, steps: list[Step], shares: Step, classes: Any) -> None:
        self.steps, self.shares, self.classes_ = steps, shares, classes

    def predict_proba(self, cells: Any) -> Floats:
        for step in self.steps:
            cells = step(cells)
        shares: Floats = self.shares(cells)
        return shares


def _model(voter: Any, labels: Labels, names: list[str]) -> _Chain:
    """A fitted voter on cells; raises :class:`Unknown` if there is no fast path."""
    if isinstance(voter, Relabelled):
        found = _model(voter.estimator, labels, names)
        return _Chain(found.steps, found.shares, voter.classes_)
    *before, model = [step for _, step in getattr(voter, "steps", [("", voter)])]
    steps: list[Step] = []
    plain = False  # whether the cells are plain numbers by now
    for step in before:
        kind = type(step).__name__
        if kind == "RateEncoder" and not plain:
            rates = _Rates(step, labels, names)
            labels, names = rates.labels, rates.names
            steps.append(rates)
        elif kind == "NumberEncoder" and not plain:
            steps.append(_Encoded(step, labels))
            plain = True
        elif kind == "ColumnTransformer" and not plain:
            steps.append(_Columns(step, labels, names))
            plain = True
        elif kind == "PairColumns" and plain:
            steps.append(step.transform)
        else:
            raise Unknown
    if isinstance(model, FastForestClassifier):
        trees = model.trees_
        if not plain:
            steps.append(_Numbers(trees.features.categories, labels))
        return _Chain(steps, trees.class_shares_of_row, model.classes_)
    if isinstance(model, CategoryBoostingClassifier) and not plain:
        steps.append(_Encoded(model.encoder_, labels))
        return _Chain(steps, model.shares, model.classes_)
    if not plain or not hasattr(model, "predict_proba"):
        raise Unknown
    if type(model).__name__ == "LGBMClassifier":
        with suppress(Unknown, ValueError):
            return _Chain(steps, _Boosted(model), model.classes_)
    return _Chain(steps, model.predict_proba, model.classes_)


class _Encoded:
    """A ``NumberEncoder``."""

    def __init__(self, encoder: Any, labels: Labels) -> None:
        self.numbers = _Numbers(encoder.categories_, labels)
        self.empty = encoder.empty_ if encoder.empty_.any() else None

    def __call__(self, cells: Floats) -> Floats:
        numbers = self.numbers(cells)
        return numbers if self.empty is None else np.where(self.empty, 0.0, numbers)


class _Rates:
    """A ``RateEncoder``: columns passed through, then rates."""

    def __init__(self, encoder: Any, labels: Labels, names: list[str]) -> None:
        kept = [f for f, name in enumerate(names) if name not in encoder.rates_]
        self.kept, self.look_up = np.array(kept, np.intp), []
        self.names, self.labels = [names[f] for f in kept], [labels[f] for f in kept]
        widths = {name: known.rates.shape[1] for name, known in encoder.rates_.items()}
        called = rate_names(names, widths)
        for name, known in encoder.rates_.items():
            f = names.index(name)
            own = labels[f]
            if own is None:
                raise Unknown
            self.look_up.append((f, own, known))
            self.names += called[name]
            self.labels += [None] * widths[name]

    def __call__(self, cells: Floats) -> Floats:
        parts = [cells[0, self.kept]]
        for f, own, known in self.look_up:
            code, place = int(cells[0, f]), len(known.hashes)  # of missing values
            if code >= 0:
                place = int(find_hashes(known.hashes, text_hashes([own[code]]))[0])
            parts.append(known.rates[place])
        return np.concatenate(parts)[np.newaxis]


class _Columns:
    """A ``ColumnTransformer`` of ranks, splines and indicators."""

    def __init__(self, transformer: Any, labels: Labels, names: list[str]) -> None:
        self.is_sparse = bool(transformer.sparse_output_)
        self.parts: list[Step] = []
        for _, step, columns in transformer.transformers_:
            places = [names.index(name) for name in columns]
            kind = type(step).__name__
            if isinstance(step, str) or not places:
                if step != "drop" and places:
                    raise Unknown
            elif kind in ("RankScaler", "RankSplines"):
                self.parts.append(_Ranks(step, np.array(places, np.intp)))
            elif kind == "OneHotEncoder":
                self.parts.append(_Indicators(step, places, columns, labels))
            else:
                raise Unknown

    def __call__(self, cells: Floats) -> Any:
        row = np.concatenate([part(cells) for part in self.parts])[np.newaxis]
        return sparse.csr_matrix(row) if self.is_sparse else row


class _Ranks:
    def __init__(self, step: Any, places: NDArray[np.intp]) -> None:
        self.step, self.places = step, places

    def __call__(self, cells: Floats) -> Floats:
        ranks: Floats = self.step.transform(cells[:, self.places])[0]
        return ranks


class _Indicators:
    """A ``OneHotEncoder``, evaluated once for each category."""

    def __init__(
        self, encoder: Any, places: list[int], columns: list[str], labels: Labels
    ) -> None:
        self.places, self.tables = places, []
        own = [labels[f] for f in places]
        if any(names is None for names in own):
            raise Unknown
        longest = max(len(names or ()) for names in own)
        coded = _every_category(encoder, columns, own, longest + 1)
        start = 0
        infrequent = getattr(encoder, "infrequent_categories_", [None] * len(own))
        for known, rare in zip(encoder.categories_, infrequent, strict=True):
            width = len(known) if rare is None else len(known) - len(rare) + 1
            self.tables.append(coded[:, start : start + width])
            start += width
        if start != coded.shape[1]:  # categories that it drops
            raise Unknown

    def __call__(self, cells: Floats) -> Floats:
        found = zip(self.tables, self.places, strict=True)
        return np.concatenate([table[int(cells[0, f])] for table, f in found])


def _every_category(
    encoder: Any, columns: list[str], labels: Labels, n_rows: int
) -> Floats:
    """The indicators of all categories; the last row is for missing values."""
    import warnings

    import pandas as pd

    made = {}
    for name, own in zip(columns, labels, strict=True):
        codes = np.where(np.arange(n_rows) < len(own or ()), np.arange(n_rows), -1)
        made[name] = pd.Categorical.from_codes(codes, categories=list(own or ()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about categories that it does not know
        coded = encoder.transform(pd.DataFrame(made))
    dense = coded.toarray() if hasattr(coded, "toarray") else coded
    return np.asarray(dense, np.float64)


class _Boosted:
    """The trees of a fitted ``LGBMClassifier`` for two classes."""

    def __init__(self, model: Any) -> None:
        found = read_lightgbm(model)
        if len(found.start) > 1:  # its softmax is quick enough
            raise Unknown
        trees, self.slope = found.trees, found.slope
        is_leaf = trees.left < 0
        nodes = np.arange(len(is_leaf))
        self.arrays = (
            trees.roots,
            np.where(is_leaf, 0, trees.feature).astype(np.int32),
            np.where(is_leaf, np.nan, trees.threshold),
            np.where(is_leaf, nodes, trees.left).astype(np.int32),
            np.where(is_leaf, nodes, trees.right).astype(np.int32),
            trees.missing_left,
            trees.value,
        )

    def __call__(self, cells: Floats) -> Floats:
        raw = sum_of_leaves(np.ascontiguousarray(cells[0]), *self.arrays)
        try:
            chance = 1.0 / (1.0 + math.exp(-self.slope * raw))
        except OverflowError:
            chance = 0.0
        return np.array([[1.0 - chance, chance]])


@kernel
def sum_of_leaves(
    row: Any,
    roots: Any,
    feature: Any,
    threshold: Any,
    left: Any,
    right: Any,
    missing_left: Any,
    value: Any,
) -> Any:
    """The sum of a row's leaf values; a leaf is its own left child."""
    total = 0.0
    for t in range(len(roots)):
        k = roots[t]
        while left[k] != k:
            x = row[feature[k]]
            if np.isnan(x):
                k = left[k] if missing_left[k] else right[k]
            else:
                k = left[k] if x <= threshold[k] else right[k]
        total += value[k]
    return total
