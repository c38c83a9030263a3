"""Out-of-sample votes on the rows of a table, training rows included."""

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
from ..hashing import kept, row_hashes, without_labels
from ..messages import counted
from ..tables import label_texts, merge_labels, pick, read_times, time_values
from .measures import alike_blocks
from .voters import FittedVote

if TYPE_CHECKING:
    import pandas as pd

    from ..io import ModelParts

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]
Mask = NDArray[np.bool_]
Hashes = NDArray[np.uint64]

LEAST_TOLD = 10
"""How many identifiable rows must be new for all rows to count as new."""
STEP = np.uint64(0x9E3779B97F4A7C15)
"""What a label adds to a hash; odd, so that different labels add different values."""
ALL_NEW = "new to the model."
MOST_NAMED = 10
UNKNOWN = -1
"""The label of an unlabelled row."""
ALIKE = ("time", "group")
"""What may make rows dependent."""


@dataclass(frozen=True, eq=False)
class Judged:
    """Rows with their out-of-sample votes and decisions.

    Attributes
    ----------
    vote : ndarray of shape (n,) for two classes, (n, C) for more
        NaN for training rows that every voter was trained on.
    of_fit : ndarray of bool, shape (n,)
        Training rows, and rows with the same values as one: they have their stored
        out-of-sample votes. Rows that may be training rows count too, without a vote.
    probability : ndarray of the shape of ``vote``
        For training rows, by a calibration learned on other rows.
    decided : ndarray of int, shape (n,)
        The predicted class; meaningless without a vote.
    threshold : ndarray of the shape of ``vote``
        The threshold (or class factors) for each vote: the model's own, or for training
        rows those tuned on other rows.
    labels : ndarray of int, shape (n,), or None
        The true class, if the table has the target; ``UNKNOWN`` where it is missing.
    untold : int
        How many rows may or may not be training rows: 0, unless the fit had so many rows
        that only a sample of them is remembered.
    step : int
        One in ``step`` training rows is remembered.
    blocks : ndarray of int, or None
        For rows with a vote, the block of dependent rows each is in; see
        ``damvi.evaluation.alike_blocks``.
    groups : ndarray, or None
        The group of each row, if there are groups.
    alike : dict of str to str
        The columns that define the blocks, by role: "time", "group".
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
        """A subset of the rows, without blocks."""
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
        """Rows that have an out-of-sample vote."""
        return np.asarray(~np.isnan(self.columns).any(axis=1))

    @property
    def columns(self) -> Floats:
        """The vote, with a column for each reported class."""
        return self.vote.reshape(len(self.vote), -1)

    def vote_to_cut(self, threshold: float, own: float) -> Floats:
        """The vote for the positive class, shifted so that all rows are cut at ``own``.

        A row with its own threshold keeps its distance to it. ``own`` is what votes must
        exceed: just below ``threshold`` if the positive class wins ties.
        """
        moved = self.vote - self.threshold + threshold
        moved = np.where(self.threshold == threshold, self.vote, moved)
        # Despite rounding, exactly the flagged rows are above it.
        above = np.maximum(moved, np.nextafter(own, np.inf))
        return np.where(self.decided == 1, above, np.minimum(moved, own))

    @property
    def n_of_fit(self) -> int:
        """Rows that are known to be training rows."""
        return int(self.of_fit.sum()) - self.untold

    @property
    def words(self) -> str:
        """Where the votes come from, in words."""
        n, known, judged = len(self), self.n_of_fit, int(self.has_vote.sum())
        every = "The only row is" if n == 1 else f"All {n:,} rows are"
        if self.untold:
            return (
                f"The model remembers one in {self.step} of its training rows, so it can "
                f"identify {n - self.untold:,} of these {n:,} rows. {known:,} of them are "
                f"training rows, scored by voters, weights and thresholds that never saw "
                f"them. {judged:,} rows are scored; the others are left out."
            )
        if known == 0:
            text = f"{every} {ALL_NEW}"
            if self.step > 1:
                text += f" (It remembers one in {self.step} training rows; none is here.)"
        else:
            some = every if known == n else f"{known:,} of {n:,} rows"
            if known < n:
                some += " is" if known == 1 else " are"
            rows = "a training row" if known == 1 else "training rows"
            them = "it" if known == 1 else "them"
            never = "scored by voters, weights and thresholds that never saw"
            text = f"{some} {rows}, {never} {them}."
            if known == n and judged < n:
                text = f"{some} {rows}. {judged:,} of them are {never} them."
        if judged < n:
            rest = counted(n - judged, "row is", "rows are")
            text += f" {rest} left out: no out-of-sample vote."
        return " ".join(filter(None, (text, alike_words(self.alike))))


def alike_words(alike: dict[str, str]) -> str:
    """Which dependence between rows the intervals account for, in words.

    Examples
    --------
    >>> alike_words({"time": "day"})
    "Intervals account for similar rows: those close in time ('day')."
    """
    parts = {"time": "those close in time ({!r})", "group": "those with the same {!r}"}
    kinds = [words.format(alike[role]) for role, words in parts.items() if role in alike]
    if not kinds:
        return ""
    return f"Intervals account for similar rows: {' and '.join(kinds)}."


def honest_rows(
    model: ModelParts,
    frame: pd.DataFrame,
    target: str | None = None,
    *,
    new: bool = False,
    partly: bool = False,
) -> Judged:
    """Score a table, with out-of-sample votes for training rows.

    Parameters
    ----------
    model : ModelParts
    frame : DataFrame
        As :func:`~damvi.tables.read_table` reads it, with
        ``schema=model.schema, as_text=[model.target.name]``.
    target : str, optional
        The column of true labels. Default: the model's target, if the table has it.
    new : bool, default=False
        Whether the rows are known not to be training rows.
    partly : bool, default=False
        Whether labels may be missing. If not, missing ones raise a ValueError.

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
    """Rows already voted on, with out-of-sample votes put in for training rows.

    ``values`` are their hashes from :func:`value_hashes`. Labels play no part in
    recognising rows, so a row scores the same before and after its label arrives.
    """
    import pandas as pd

    known = _recognise(model, values, None)
    found = np.flatnonzero(known.place >= 0)
    votes = vote.copy()
    votes[found] = model.training.vote[known.place[found]]
    none = pd.DataFrame(index=range(len(votes)))
    return _judged(model, votes, known, labels, none, values)


Part = Callable[[], Iterable[Any]]
"""A part of a table, as an iterable of frames."""


def honest_blocks(
    model: ModelParts, parts: Sequence[Part], target: str, n_jobs: int | None = None
) -> Judged:
    """As :func:`honest_rows`, for a table in parts, each read twice in blocks.

    Training rows are recognised from all hashes at once. Only a row's hash, label, votes
    and the columns that define blocks are kept in memory.
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
    """The time and group columns that the model was fitted with."""
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
    """Add blocks of dependent rows, by the time and group columns of the fit."""
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
    """The class number of each row; labels unknown to the model are an error.

    If labels may be missing (``partly``), those are ``UNKNOWN``.
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
            f"the target {column!r} has {counted(n, 'row')} with {_listed(strange)}, but "
            f"the model only knows {_listed(list(classes))}"
        )
    return places.to_numpy(dtype=np.intp)


def _listed(labels: list[str]) -> str:
    from ..tables.labels import listed

    if len(labels) > MOST_NAMED:
        named = ", ".join(map(repr, labels[:MOST_NAMED]))
        return f"{named} and {len(labels) - MOST_NAMED:,} more"
    return listed(labels)


def class_names(target: Any) -> tuple[str, ...]:
    """The class names, in order of their numbers; of two, the positive one is last."""
    other = target.negative or f"not {target.positive}"
    return target.classes or (other, target.positive)


def are_of_fit(model: ModelParts, X: Any) -> Mask:
    """Which encoded rows have the values of a remembered training row."""
    values, known = value_hashes(X), without_labels(model.training.hashes)
    if len(values) < len(known):  # sort the fewer ones
        last = np.uint64(-1 % 2**64)  # no hash without a label is odd
        distinct = np.append(np.unique(values), last)
        known = known[distinct[np.searchsorted(distinct, known)] == known]
    return np.isin(values, known)


def table_fingerprint(X: Any, labels: NDArray[Any] | None = None) -> str:
    """A short fingerprint of an encoded table, independent of row order.

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
    """The index of each row among the training rows (-1 if new), which rows count as
    training rows, and how many of those are uncertain."""

    place: Labels
    of_fit: Mask
    untold: int = 0

    def between(self, start: int, stop: int) -> _Recognised:
        return _Recognised(self.place[start:stop], self.of_fit[start:stop])


def value_hashes(encoded: Any) -> Hashes:
    """A hash of each encoded row, without its label."""
    return without_labels(row_hashes(encoded, np.zeros(len(encoded))))


def _recognise(model: ModelParts, values: Hashes, labels: Labels | None) -> _Recognised:
    """Find training rows by their hashes.

    After a fit on very many rows, only a sample is remembered. If any of those turn up, all
    rows that cannot be identified count as training rows, without a vote.
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
    """Votes on encoded rows, block by block; the stored ones for training rows."""
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
    """Whether any rows are training rows, judging by the remembered sample."""
    if n_found:
        return True
    told = len(kept(values, step))
    if told < LEAST_TOLD:
        raise ValueError(
            f"the model remembers one in {step} of its training rows, so it can identify "
            f"only {told} of these {len(values):,} rows, and {LEAST_TOLD} are needed to "
            f"tell new rows from training rows; give at least "
            f"{2 * step * LEAST_TOLD:,} rows at a time"
        )
    return False


def _labelled(values: Hashes, labels: NDArray[Any]) -> Hashes:
    """Hashes that include the label."""
    labelled: Hashes = values + labels.astype(np.uint64) * STEP
    return labelled


def _match(hashes: Hashes, values: Hashes, known: Hashes, known_values: Hashes) -> Labels:
    """The index of each row among the known ones; -1 if there is none.

    ``hashes`` depend on values and label, ``values`` on values only. Of rows with the same
    values and label, the k-th is matched with the k-th training row. A row with the values
    of a training row but another label, or one copy too many, is matched with the first:
    the model has seen these values, so its own vote would be optimistic.
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
    """The index of each hash among the known ones, k-th with k-th; -1 if none."""
    order = np.argsort(known, kind="stable")
    ranked = known[order]
    first = np.searchsorted(ranked, hashes, side="left")
    count = np.searchsorted(ranked, hashes, side="right") - first
    # How many equal hashes come before each.
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
