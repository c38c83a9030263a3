"""The vote on each row of a table: for training rows, the one that was out of sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._kernels import in_threads
from ..decision import decide
from ..folds import alike_blocks
from ..hashing import kept, row_hashes, without_labels
from ..messages import counted
from ..tables import label_texts, merge_labels, pick, read_times, time_values
from .voters import FittedVote

if TYPE_CHECKING:
    import pandas as pd

    from ..io import ModelParts

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]
Mask = NDArray[np.bool_]
Hashes = NDArray[np.uint64]

LEAST_TOLD = 10
"""Rows that must turn out new, where few can be told, for all of them to count as new."""
STEP = np.uint64(0x9E3779B97F4A7C15)
"""What a label adds to a hash; odd, so that no two labels add the same."""
MOST_NAMED = 10
UNKNOWN = -1
"""The label of a row that has none."""
ALIKE = ("time", "group")
"""What may make rows alike."""


@dataclass(frozen=True, eq=False)
class Judged:
    """Rows with what a model says of them, out of sample.

    Attributes
    ----------
    vote : ndarray of shape (n,) for two classes, (n, C) for more
        NaN for training rows that every voter was trained on.
    of_fit : ndarray of bool, shape (n,)
        Training rows, and rows with the same values as one of them: their votes are the
        stored ones, out of sample. Rows that may be training rows count as such too,
        without a vote.
    probability : ndarray of the shape of ``vote``
        Of training rows, by a calibration learned on others.
    decided : ndarray of int, shape (n,)
        The number of the class decided for; of no meaning without a vote.
    threshold : ndarray of the shape of ``vote``
        What each vote is cut at, or its factors: the model's own, and of training rows
        those that were tuned on others.
    labels : ndarray of int, shape (n,), or None
        The number of the true class, if the table has the target; ``UNKNOWN`` where it has
        none.
    untold : int
        How many rows may be training rows: none, unless the fit had so many rows that it
        remembers only some of them.
    step : int
        Of how many training rows one is remembered.
    blocks : ndarray of int, or None
        For the rows with a vote, which block of alike rows each is in: see
        ``damvi.folds.alike_blocks``.
    groups : ndarray, or None
        For all rows, which group each is in, where there are any.
    alike : dict of str to str
        The columns that these are made by: "time", "group".
    values : ndarray of uint64, shape (n,), or None
        A hash of the values of each row.
    """

    vote: Floats
    of_fit: Mask
    probability: Floats
    decided: Labels
    threshold: Floats
    labels: Labels | None
    untold: int = 0
    step: int = 1
    blocks: Labels | None = None
    groups: NDArray[Any] | None = None
    alike: dict[str, str] = field(default_factory=dict)
    values: Hashes | None = None

    def __len__(self) -> int:
        return len(self.vote)

    def take(self, rows: Mask) -> Judged:
        """Some of the rows, none of them alike."""
        labels = None if self.labels is None else self.labels[rows]
        return Judged(
            self.vote[rows],
            self.of_fit[rows],
            self.probability[rows],
            self.decided[rows],
            self.threshold[rows],
            labels,
        )

    @property
    def has_vote(self) -> Mask:
        """Rows that can be judged."""
        return np.asarray(~np.isnan(self.columns).any(axis=1))

    @property
    def columns(self) -> Floats:
        """The vote, with a column for each class that is looked for."""
        return self.vote.reshape(len(self.vote), -1)

    def vote_to_cut(self, threshold: float, own: float) -> Floats:
        """The vote for the positive class, moved so that all rows are cut at ``own``.

        Rows with a threshold of their own lie as far from the model's as they did from
        theirs. ``own`` is what votes must be above, which is just below ``threshold`` where
        the positive class wins ties.
        """
        moved = self.vote - self.threshold + threshold
        moved = np.where(self.threshold == threshold, self.vote, moved)
        # Whatever the rounding, the rows above it are those that are flagged.
        above = np.maximum(moved, np.nextafter(own, np.inf))
        return np.where(self.decided == 1, above, np.minimum(moved, own))

    @property
    def n_of_fit(self) -> int:
        """Rows that are known to be training rows."""
        return int(self.of_fit.sum()) - self.untold

    @property
    def words(self) -> str:
        """Where the votes come from, for the user to read."""
        n, known, judged = len(self), self.n_of_fit, int(self.has_vote.sum())
        every = "The only row is" if n == 1 else f"All {n:,} rows are"
        if self.untold:
            return (
                f"The training rows are judged by a sample of one in {self.step} of them, "
                f"which the model remembers. Of the {n:,} rows here it can tell "
                f"{n - self.untold:,}: {known:,} are training rows, each judged by voters, "
                f"weights and thresholds that had not seen it. {judged:,} rows are judged, "
                f"and the others left out."
            )
        if known == 0:
            text = f"{every} new to the model."
            if self.step > 1:
                text += f" (It remembers one in {self.step} of its own, and met none here.)"
        else:
            some = every if known == n else f"{known:,} of {n:,} rows"
            if known < n:
                some += " is" if known == 1 else " are"
            rows = "a training row" if known == 1 else "training rows"
            text = (
                f"{some} {rows}: each is judged by voters, weights and thresholds that had "
                f"not seen it."
            )
        if judged < n:
            what = "no out-of-sample vote and"
            rest = counted(n - judged, f"row has {what} is", f"rows have {what} are")
            text += f" {rest} left out."
        return " ".join(filter(None, (text, alike_words(self.alike))))


def alike_words(alike: dict[str, str]) -> str:
    """What intervals heed, for the user to read; by the columns that say it.

    Examples
    --------
    >>> alike_words({"time": "day"})
    "Intervals allow for rows being alike that are near in time ('day')."
    """
    parts = {"time": "near in time ({!r})", "group": "of one {!r}"}
    told = [words.format(alike[role]) for role, words in parts.items() if role in alike]
    return f"Intervals allow for rows being alike that are {' or '.join(told)}." * bool(
        told
    )


def honest_rows(
    model: ModelParts,
    frame: pd.DataFrame,
    target: str | None = None,
    *,
    new: bool = False,
    partly: bool = False,
) -> Judged:
    """Judge a table, with out-of-sample votes for the rows that the model knows.

    Parameters
    ----------
    model : ModelParts
    frame : DataFrame
        As :func:`~damvi.tables.read_table` reads it, with
        ``schema=model.schema, as_text=[model.target.name]``.
    target : str, optional
        The column that has the truth. By default the model's own, if it is there.
    new : bool, default=False
        Whether the rows are known to be new, whatever their values.
    partly : bool, default=False
        Whether the truth may be missing in some rows. By default these raise a ValueError.

    Returns
    -------
    judged : Judged
    """
    name = model.target.name if target is None else target
    labels = None
    if target is not None or name in frame.columns:
        labels = true_labels(model.target, frame, name, partly=partly)
    encoded = model.schema.encode(frame)
    values = value_hashes(encoded)
    known = _Recognised(np.full(len(frame), -1), np.zeros(len(frame), np.bool_))
    if not new:
        known = _recognise(model, values, labels)
    vote = _votes(model, [encoded], known)
    return _judged(model, vote, known, labels, frame, values)


def with_votes(
    model: ModelParts, values: Hashes, vote: Floats, labels: Labels | None = None
) -> Judged:
    """Rows that a model has voted on already, with out-of-sample votes for those it knows.

    ``values`` are their hashes, as :func:`value_hashes` makes them. Labels have no part in
    which rows are recognised, so that a row is judged alike before they come and after.
    """
    import pandas as pd

    known = _recognise(model, values, None)
    found = np.flatnonzero(known.place >= 0)
    votes = vote.copy()
    votes[found] = model.training.vote[known.place[found]]
    none = pd.DataFrame(index=range(len(votes)))
    return _judged(model, votes, known, labels, none, values)


Part = Callable[[], Iterable[Any]]
"""Some rows of a table, as frames one after the other."""


def honest_blocks(
    model: ModelParts, parts: Sequence[Part], target: str, n_jobs: int | None = None
) -> Judged:
    """The same of a table in parts, each of which is read twice and in blocks.

    Training rows are told from all hashes at once. Of a row no more is kept than that, its
    label, the columns that tell which rows are alike, and what is said of it.
    """
    import pandas as pd

    def look(part: Part) -> list[tuple[Hashes, Labels, pd.DataFrame]]:
        return [
            (
                value_hashes(model.schema.encode(frame)),
                true_labels(model.target, frame, target),
                frame[[name for name in alike_columns(model) if name in frame.columns]],
            )
            for frame in part()
        ]

    def encoded(part: Part) -> Iterator[Any]:
        return (model.schema.encode(frame) for frame in part())

    looked = [*in_threads((partial(look, part) for part in parts), n_jobs)]
    blocks = [block for some in looked for block in some]
    values, labels = (np.concatenate([block[j] for block in blocks]) for j in range(2))
    columns = pd.concat([block[2] for block in blocks], ignore_index=True)
    known = _recognise(model, values, labels)
    ends = np.cumsum([0, *(sum(len(block[0]) for block in part) for part in looked)])
    calls = (
        partial(_votes, model, partial(encoded, part), known.between(start, stop))
        for part, (start, stop) in zip(parts, pairwise(ends.tolist()), strict=True)
    )
    del looked, blocks
    vote = np.concatenate([*in_threads(calls, n_jobs)])
    return _judged(model, vote, known, labels, columns, values)


def alike_columns(model: ModelParts) -> list[str]:
    """Columns that say which rows are alike, as far as the fit was told."""
    said = model.scores.get("alike")
    known = [said.get(role) for role in ALIKE] if isinstance(said, dict) else []
    return [name for name in known if isinstance(name, str)]


def _judged(
    model: ModelParts,
    vote: Floats,
    recognised: _Recognised,
    labels: Labels | None,
    frame: pd.DataFrame,
    values: Hashes,
) -> Judged:
    place, of_fit, untold = recognised
    fitted, training = FittedVote(model.classifier), model.training
    chance, decided = fitted.decide(vote)
    threshold = np.broadcast_to(fitted.threshold, vote.shape).astype(np.float64)
    known = np.flatnonzero(place >= 0)
    if training.threshold is not None:
        threshold[known] = training.threshold[place[known]]
        decided[known] = decide(vote[known], threshold[known], fitted.labels.target_order)
    if training.probability is not None:
        chance[known] = training.probability[place[known]]
    remembers = fitted.remembers
    judged = Judged(vote, of_fit, chance, decided, threshold, labels, untold, remembers)
    return with_blocks(model, frame, replace(judged, values=values))


def with_blocks(model: ModelParts, frame: pd.DataFrame, judged: Judged) -> Judged:
    """The blocks of rows that are alike, by the columns that said so of training rows."""
    import pandas as pd

    some = judged.has_vote
    said = model.scores.get("alike")
    known = said if isinstance(said, dict) else {}
    there = {
        role: known[role]
        for role in ALIKE
        if isinstance(known.get(role), str) and known[role] in frame.columns
    }
    times = groups = None
    if "time" in there:
        column = frame[there["time"]]
        try:
            times = read_times(column)
        except ValueError:
            # As at the fit: a row without a date goes with the one before it.
            found = time_values(frame, there["time"])
            if found is not None:
                times = pd.Series(found).ffill().bfill().to_numpy()
        if times is None:
            del there["time"]
        else:
            times = times[some]
    if "group" in there:
        column = frame[there["group"]]
        if column.isna().any():  # a group of their own
            column = column.astype("string").fillna("")
        groups = column.to_numpy()
    blocks = alike_blocks(times, None if groups is None else groups[some])
    return replace(
        judged, blocks=blocks, groups=groups, alike={} if blocks is None else there
    )


def true_labels(
    target: Any, frame: pd.DataFrame, column: str, partly: bool = False
) -> Labels:
    """The number of each row's class; labels that the model does not know are refused.

    Where labels may be missing (``partly``), these are ``UNKNOWN``.
    """
    labels = label_texts(pick(frame, column, "target"))
    if partly and labels.isna().any():
        places, known = np.full(len(frame), UNKNOWN, np.intp), labels.notna().to_numpy()
        if known.any():
            places[known] = true_labels(target, frame.loc[known, [column]], column)
        return places
    if labels.isna().any():
        raise ValueError(
            f"the target {column!r} is missing in {counted(labels.isna().sum(), 'row')}; "
            f"drop them first"
        )
    classes = target.texts
    if target.merged:
        labels = merge_labels(labels, [label for label in classes if label])
    places = labels.map({label: place for place, label in enumerate(classes)})
    if classes == ("", target.positive):
        # A model of one class against several others takes any of them as negative.
        places = places.fillna(0)
    strange = labels[places.isna().to_numpy()].unique().tolist()
    if strange:
        n = int(places.isna().sum())
        raise ValueError(
            f"the target {column!r} has {counted(n, 'row')} of {_listed(strange)}, but the "
            f"model knows {_listed(list(classes))}"
        )
    return places.to_numpy(dtype=np.intp)


def _listed(labels: list[str]) -> str:
    from ..tables.labels import listed

    if len(labels) > MOST_NAMED:
        named = ", ".join(map(repr, labels[:MOST_NAMED]))
        return f"{named} and {len(labels) - MOST_NAMED:,} more"
    return listed(labels)


def class_names(target: Any) -> tuple[str, ...]:
    """What the classes are called, by their numbers: of two, the positive one is last."""
    other = target.negative or f"not {target.positive}"
    return target.classes or (other, target.positive)


def are_of_fit(model: ModelParts, X: Any) -> Mask:
    """Which encoded rows have the values of a training row that the model remembers."""
    values = without_labels(row_hashes(X, np.zeros(len(X))))
    return np.isin(values, without_labels(model.training.hashes))


def table_fingerprint(X: Any, labels: NDArray[Any] | None = None) -> str:
    """One short text for all rows of an encoded table, whatever their order.

    Examples
    --------
    >>> from damvi.evaluation import table_fingerprint
    >>> table_fingerprint([[1, 2], [3, 4]]) == table_fingerprint([[3, 4], [1, 2]])
    True
    """
    return fingerprint_of(row_hashes(X, np.zeros(len(X)) if labels is None else labels))


def fingerprint_of(hashes: Hashes) -> str:
    """The same from the hashes of the rows."""
    return sha256(np.sort(hashes).astype("<u8").tobytes()).hexdigest()[:16]


class _Recognised(NamedTuple):
    """The place of each row among the training rows, -1 for others; which rows count as
    training rows; and how many of these may be none."""

    place: Labels
    of_fit: Mask
    untold: int = 0

    def between(self, start: int, stop: int) -> _Recognised:
        return _Recognised(self.place[start:stop], self.of_fit[start:stop])


def value_hashes(encoded: Any) -> Hashes:
    """A hash of each encoded row, whatever its label."""
    return without_labels(row_hashes(encoded, np.zeros(len(encoded))))


def _recognise(model: ModelParts, values: Hashes, labels: Labels | None) -> _Recognised:
    """Which rows are training rows, by their hashes.

    Of a fit on very many rows only a sample is known. Where rows of that are met, all rows
    that the sample cannot tell count as training rows, without a vote.
    """
    training, step = model.training, FittedVote(model.classifier).remembers
    known = without_labels(training.hashes)
    if labels is None:
        place = _match(values, values, known, known)
    else:
        keys = _labelled(values, labels), _labelled(known, training.labels)
        place = _match(keys[0], values, keys[1], known)
    of_fit = place >= 0
    found, untold = np.flatnonzero(of_fit), 0
    if step > 1 and labels is not None and _some_are_of_fit(len(found), values, step):
        of_fit[:] = True
        of_fit[kept(values, step)] = False
        untold = int(of_fit.sum())
        of_fit[found] = True
    return _Recognised(place, of_fit, untold)


def _votes(model: ModelParts, blocks: Any, known: _Recognised) -> Floats:
    """The votes on encoded rows, block by block; stored ones for rows that are known."""
    training, start = model.training, 0
    vote = np.full((len(known.place), *training.vote.shape[1:]), np.nan)
    found = np.flatnonzero(known.place >= 0)
    vote[found] = training.vote[known.place[found]]
    if known.of_fit.all():
        return vote
    for encoded in blocks() if callable(blocks) else blocks:
        new = np.flatnonzero(~known.of_fit[start : start + len(encoded)])
        if len(new):
            vote[start + new] = model.classifier.vote(encoded.iloc[new])
        start += len(encoded)
    return vote


def _some_are_of_fit(n_found: int, values: Hashes, step: int) -> bool:
    """Whether there are training rows among these, by those that are remembered."""
    if n_found:
        return True
    told = len(kept(values, step))
    if told < LEAST_TOLD:
        raise ValueError(
            f"the model remembers one in {step} of the rows that it was fitted on, so it "
            f"can tell for {told} of these {len(values):,} rows whether they are among "
            f"them, and {LEAST_TOLD} are needed; give it at least "
            f"{2 * step * LEAST_TOLD:,} rows at a time"
        )
    return False


def _labelled(values: Hashes, labels: NDArray[Any]) -> Hashes:
    """Hashes that also tell labels apart."""
    labelled: Hashes = values + labels.astype(np.uint64) * STEP
    return labelled


def _match(hashes: Hashes, values: Hashes, known: Hashes, known_values: Hashes) -> Labels:
    """For each row its place among the known ones; -1 for none.

    ``hashes`` tell rows with other values or another label apart, ``values`` only the
    first. Of rows with the same values and label, the first goes with the first training
    row, and so on. A row with the values of a known one, but another label, or once too
    often, goes with the first: the model has seen these values, so its own vote would
    flatter.
    """
    place = _match_in_turn(hashes, known)
    left = np.flatnonzero(place < 0)
    place[left] = _match_in_turn(values[left], known_values)
    left = np.flatnonzero(place < 0)
    distinct, first = np.unique(known_values, return_index=True)
    at = np.searchsorted(distinct, values[left])
    there = at < len(distinct)
    there[there] = distinct[at[there]] == values[left][there]
    place[left[there]] = first[at[there]]
    return place


def _match_in_turn(hashes: Hashes, known: Hashes) -> Labels:
    """For each print its place among the known, the k-th with the k-th; -1 for none."""
    order = np.argsort(known, kind="stable")
    ranked = known[order]
    first = np.searchsorted(ranked, hashes, side="left")
    count = np.searchsorted(ranked, hashes, side="right") - first
    # How many of the same came before each.
    by_print = np.argsort(hashes, kind="stable")
    same = hashes[by_print]
    starts = np.flatnonzero(np.concatenate([[True], same[1:] != same[:-1]]))
    turn = np.empty(len(hashes), dtype=np.intp)
    lengths = np.diff(np.append(starts, len(same)))
    turn[by_print] = np.arange(len(hashes)) - np.repeat(starts, lengths)
    found = turn < count
    place = np.full(len(hashes), -1)
    place[found] = order[(first + turn)[found]]
    return place
