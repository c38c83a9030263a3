"""The bootstrap: how much scores vary over resampled rows.

Draws are stratified by class. Scores of decisions only need the confusion table, so tables
are drawn from a multinomial instead of rows. The same goes for a single ranking, which only
needs counts by class in cells of equal votes. With several rankings, rows are drawn; very
many rows are thinned and weighted.

Dependent rows, close in time or of the same group, come in blocks. Then whole blocks are
drawn, and the class sizes vary.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..decision import recall_of_top

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

N_DRAWS = 300
MOST_CELLS = 5000
"""Distinct votes in the draws of one ranking; more are binned."""
MOST_RANKS = 2000
"""Distinct votes in the draws of the top rows; more are binned."""
MOST_WORK = 100_000_000
"""Limit on rows times classes times draws."""
FEWEST_OF_CLASS = 200
"""Thinning keeps at least this many rows of a class."""
BLOCK = 25
"""Draws per block."""
TRIES = 20
"""Attempts to draw blocks with rows of all classes."""


class Drawn(NamedTuple):
    """The scores of each draw.

    Attributes
    ----------
    tables : ndarray of shape (draws, C, C)
        Confusion tables.
    ranks : ndarray of shape (2, classes, draws)
        Average precision and ROC AUC of each reported class.
    errors : ndarray of shape (draws,) or None
        Mean squared errors of the probabilities.
    """

    tables: Floats
    ranks: Floats
    errors: Floats | None


def draw(
    seed: int,
    truth: Labels,
    vote: Floats,
    classes: Labels,
    named: Labels,
    errors: Floats | None,
    ranks: Floats,
    blocks: Labels | None,
) -> Drawn:
    """Draw rows or blocks and score each draw; ``ranks`` are the scores of all rows.

    ``classes`` are all classes, those with a column of ``vote`` first.
    """
    if blocks is not None:
        return _draw_blocks(seed, truth, vote, classes, named, errors, blocks)
    how = _draw_cells if vote.shape[1] == 1 else _draw_rows
    return how(seed, truth, vote, named, errors, ranks)


def widening(blocks: Labels) -> float:
    """The factor that corrects the spread of bootstrap draws for few blocks.

    The bootstrap variance of B blocks is too small by (B - 1) / B, and a spread estimated
    from B blocks calls for Student's distribution.
    """
    from scipy.stats import norm, t

    n = len(np.unique(blocks))
    return float(sqrt(n / (n - 1)) * t.ppf(0.95, n - 1) / norm.ppf(0.95))


def confusion(labels: ArrayLike, decided: ArrayLike, n_classes: int) -> NDArray[np.int64]:
    """Counts by true class (row) and predicted class (column).

    Examples
    --------
    >>> confusion([1, 1, 0], [1, 0, 0], 2).tolist()
    [[1, 0], [1, 1]]
    """
    places = np.asarray(labels, np.intp) * n_classes + np.asarray(decided, np.intp)
    cells = np.bincount(places, minlength=n_classes**2).astype(np.int64)
    return cells.reshape(n_classes, n_classes)


def of_tables(tables: Floats, cost: tuple[float, float] | None) -> dict[str, Floats]:
    """Scores of confusion tables (draws, C, C): by class (draws, C) or overall (draws,)."""
    found = np.diagonal(tables, axis1=1, axis2=2)
    sizes, named = tables.sum(axis=2), tables.sum(axis=1)
    total, right = sizes.sum(axis=1), found.sum(axis=1)
    there = (sizes > 0).any(axis=0)
    recall, f1 = _part(found, sizes), _part(2 * found, sizes + named)
    # A draw of blocks may lack a class.
    recall[sizes == 0] = f1[sizes == 0] = np.nan
    # Gorodkin's multiclass MCC; 0 if decisions or labels are constant.
    spread = (total**2 - (named**2).sum(axis=1)) * (total**2 - (sizes**2).sum(axis=1))
    figures = {
        "precision": _part(found, named),
        "recall": recall,
        "f1": f1,
        "macro_f1": class_means(f1[:, there]),
        "balanced_accuracy": class_means(recall[:, there]),
        "accuracy": right / total,
        "mcc": _part(
            right * total - (named * sizes).sum(axis=1), np.sqrt(np.maximum(spread, 0.0))
        ),
    }
    if cost is not None:
        figures["cost"] = (cost[0] * tables[:, 0, 1] + cost[1] * tables[:, 1, 0]) / total
    return figures


def _part(part: Floats, whole: Floats) -> Floats:
    """``part / whole``, or 0 where ``whole`` is 0."""
    return np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)


def class_means(figures: Floats) -> Floats:
    """Row means over the classes that are present."""
    whole = not np.isnan(figures).any()
    return np.asarray(figures.mean(axis=1) if whole else np.nanmean(figures, axis=1))


def rank_figures(
    truth: Labels, votes: Floats, reported: Labels, weight: Floats, only_ap: bool = False
) -> Floats:
    """Average precision and ROC AUC (2, classes, draws) for these row weights.

    The votes have a column for each class that is ``reported``; 0 if it has no rows. Ties
    count half in ROC AUC.
    """
    ranks = np.zeros((2, len(reported), len(weight)))
    for at, c in enumerate(reported):
        column = votes[:, at]
        if not (truth == c).any():
            continue
        order = np.argsort(-column, kind="stable")
        ranked = column[order]
        starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
        mass = weight[:, order]
        both = np.add.reduceat(mass, starts, axis=1)
        up = np.add.reduceat(mass * (truth[order] == c), starts, axis=1)
        ups, flagged = up.cumsum(axis=1), both.cumsum(axis=1)
        with np.errstate(invalid="ignore"):  # a draw without a row of the class
            ranks[0, at] = (up * _part(ups, flagged)).sum(axis=1) / ups[:, -1]
            if not only_ap:
                pairs = ((both - up) * (ups - up / 2)).sum(axis=1)
                ranks[1, at] = pairs / (ups[:, -1] * (flagged - ups)[:, -1])
    return ranks


def _draw_cells(
    seed: int, truth: Labels, vote: Floats, named: Labels, errors: Any, ranks: Floats
) -> Drawn:
    """Draws for one ranking, by cells of equivalent rows.

    Rows in a cell share class, decision and vote; with more than ``MOST_CELLS`` distinct
    votes, neighbouring ones are merged.
    """
    rng = np.random.RandomState([seed, 11])
    distinct, level = np.unique(-vote, return_inverse=True)
    level = level.reshape(-1)
    if len(distinct) > MOST_CELLS:
        # Bins follow the positives' votes as far as possible.
        own = np.unique(level[truth == 1])
        room = MOST_CELLS // 2
        take = np.linspace(0, len(own) - 1, min(len(own), room)).round().astype(np.intp)
        even = np.linspace(0, len(distinct) - 1, room).round().astype(np.intp)
        level = np.searchsorted(np.union1d(own[take], even), level)
    keys, cell, members = np.unique(
        (level * 2 + truth) * 2 + named, return_inverse=True, return_counts=True
    )
    kind, decided = keys // 2 % 2, keys % 2
    counts = np.empty((N_DRAWS, len(keys)))
    for side in (kind == 1, kind == 0):
        size = members[side].sum()
        counts[:, side] = rng.multinomial(size, members[side] / size, size=N_DRAWS)
    tables = np.zeros((N_DRAWS, 2, 2))
    for y, c in np.ndindex(2, 2):
        tables[:, y, c] = counts[:, (kind == y) & (decided == c)].sum(axis=1)
    ranked = -(keys // 4).astype(np.float64)[:, np.newaxis]
    drawn = rank_figures(kind, ranked, np.array([1]), counts)
    if errors is None:
        return Drawn(tables, drawn, None)
    mean_error = np.bincount(cell.reshape(-1), errors) / members
    return Drawn(tables, drawn, counts @ mean_error / len(truth))


def draw_top(
    seed: int,
    positive: NDArray[np.bool_],
    vote: Floats,
    shares: Floats,
    blocks: Labels | None,
) -> tuple[Floats, Floats]:
    """Precision and recall in the top rows of each draw: (draws, shares) each.

    Each draw has its own positives and its own cut. Ties, and with very many rows
    neighbouring votes, are averaged.
    """
    rng = np.random.RandomState([seed, 23])
    level = np.unique(-vote, return_inverse=True)[1].reshape(-1)
    last = int(level.max())
    if last >= MOST_RANKS:  # fine bins at the top, coarser below
        alone = MOST_RANKS // 2
        others = np.geomspace(alone, last, MOST_RANKS - alone).astype(np.intp)
        level = np.searchsorted(np.union1d(np.arange(alone), others), level)
    n_cells = 2 * (int(level.max()) + 1)
    cell = 2 * level + positive
    if blocks is None:
        members = np.bincount(cell, minlength=n_cells)
        filled = np.flatnonzero(members)
        counts = np.zeros((N_DRAWS, n_cells))
        part = members[filled] / len(vote)
        counts[:, filled] = rng.multinomial(len(vote), part, size=N_DRAWS)
    else:
        numbers = np.unique(blocks, return_inverse=True)[1].reshape(-1)
        times = _times_of_blocks(rng, positive.astype(np.intp), numbers)
        n_blocks = times.shape[1]
        found = np.bincount(numbers * n_cells + cell, minlength=n_blocks * n_cells)
        counts = times @ found.reshape(n_blocks, n_cells)
    up = counts[:, 1::2].cumsum(axis=1)
    both = up + counts[:, ::2].cumsum(axis=1)
    precision, recall = np.empty((2, N_DRAWS, len(shares)))
    for k, (seen, found) in enumerate(zip(both, up, strict=True)):
        rows = shares * seen[-1]
        hits = np.interp(rows, np.append(0, seen), np.append(0, found))
        precision[k], recall[k] = hits / rows, hits / max(found[-1], 1)
    return precision, recall


def _draw_rows(
    seed: int, truth: Labels, vote: Floats, named: Labels, errors: Any, ranks: Floats
) -> Drawn:
    """Stratified draws of confusion tables, and of rows for ranks and errors."""
    rng = np.random.RandomState([seed, 17])
    # A canonical order, so that intervals do not depend on the order of the rows.
    order = np.lexsort((*vote.T, named, truth))
    truth, vote, named = truth[order], vote[order], named[order]
    errors = None if errors is None else errors[order]
    table = confusion(truth, named, vote.shape[1])
    tables = np.zeros((N_DRAWS, *table.shape))
    for c, row in enumerate(table):
        if row.sum():
            tables[:, c] = rng.multinomial(row.sum(), row / row.sum(), size=N_DRAWS)
    classes = np.arange(vote.shape[1])
    rows, scale = _thinned(rng, truth, classes)
    some, votes = truth[rows], vote[rows]
    drawn = np.empty((*ranks.shape, N_DRAWS))
    faults = np.empty(N_DRAWS)
    for block, weight in _weights_of_rows(rng, some, classes, scale):
        drawn[:, :, block] = rank_figures(some, votes, classes, weight)
        if errors is not None:
            faults[block] = weight @ errors[rows] / len(truth)
    # Repeated rows flatter a ranking, and thinned rows are a sample: use only the spread
    # of the draws, centred on the score of all rows.
    drawn += (ranks - drawn.mean(axis=2))[:, :, None]
    if errors is None:
        return Drawn(tables, drawn, None)
    return Drawn(tables, drawn, faults + (float(errors.mean()) - faults.mean()))


def _draw_blocks(
    seed: int,
    truth: Labels,
    votes: Floats,
    classes: Labels,
    named: Labels,
    errors: Floats | None,
    blocks: Labels,
) -> Drawn:
    """The same for draws of whole blocks."""
    rng = np.random.RandomState([seed, 19])
    reported = classes[: votes.shape[1]]
    order = np.lexsort((*votes.T, named, truth, blocks))
    truth, votes, named = truth[order], votes[order], named[order]
    numbers = np.unique(blocks[order], return_inverse=True)[1].reshape(-1)
    n_classes = len(classes)
    cells = (numbers * n_classes + truth) * n_classes + named
    n_cells = (numbers[-1] + 1) * n_classes**2
    by_block = np.bincount(cells, minlength=n_cells).reshape(-1, n_classes**2)
    times = _times_of_blocks(rng, truth, numbers)
    tables = (times @ by_block.astype(float)).reshape(N_DRAWS, n_classes, n_classes)
    ranks = np.stack(
        [
            _ranks_of_blocks(truth == c, votes[:, at], numbers, times)
            for at, c in enumerate(reported)
        ],
        axis=1,
    )
    if errors is None:
        return Drawn(tables, ranks, None)
    faults = times @ np.bincount(numbers, errors[order])
    return Drawn(tables, ranks, faults / (times @ np.bincount(numbers)))


def _ranks_of_blocks(
    positive: NDArray[np.bool_], vote: Floats, numbers: Labels, times: Floats
) -> Floats:
    """Average precision and ROC AUC (2, draws) of one class; NaN if it has no rows.

    These only need the counts of each block's rows above each positive's vote. If there
    are very many such votes, neighbouring ones are merged.
    """
    if not positive.any():
        return np.full((2, len(times)), np.nan)
    level = np.unique(-vote, return_inverse=True)[1].reshape(-1)
    own = np.unique(level[positive])
    if len(own) > MOST_CELLS:
        own = own[np.linspace(0, len(own) - 1, MOST_CELLS).round().astype(np.intp)]
    at, n_blocks = np.searchsorted(own, level), times.shape[1]

    def count(rows: NDArray[np.bool_]) -> Floats:
        cells = at[rows] * n_blocks + numbers[rows]
        found = np.bincount(cells, minlength=len(own) * n_blocks).reshape(-1, n_blocks)
        return np.asarray(found.astype(float) @ times.T)

    ranked = at < len(own)
    up, tied = count(positive), count(~positive & ranked & np.isin(level, own))
    ups, alarms = up.cumsum(axis=0), count(~positive & ranked).cumsum(axis=0)
    negatives = times @ np.bincount(numbers[~positive], minlength=n_blocks)
    with np.errstate(invalid="ignore"):
        precision = (up * _part(ups, ups + alarms)).sum(axis=0) / ups[-1]
        pairs = (up * (negatives - alarms + tied / 2)).sum(axis=0)
        return np.stack([precision, pairs / (ups[-1] * negatives)])


def _times_of_blocks(rng: np.random.RandomState, truth: Labels, numbers: Labels) -> Floats:
    """How often each block is in each draw, nearly always with all classes present."""
    n = int(numbers.max()) + 1
    has = np.zeros((n, int(truth.max()) + 1))
    has[numbers, truth] = 1
    has = has[:, has.any(axis=0)]
    times = rng.multinomial(n, np.full(n, 1 / n), size=N_DRAWS).astype(float)
    for _ in range(TRIES):
        poor = np.flatnonzero((times @ has == 0).any(axis=1))
        if not len(poor):
            break
        times[poor] = rng.multinomial(n, np.full(n, 1 / n), size=len(poor))
    return times


def _thinned(
    rng: np.random.RandomState, truth: Labels, classes: Labels, n_votes: int = 1
) -> tuple[Labels, Floats]:
    """Rows to draw from and their weights; rare classes keep all rows."""
    room = max(MOST_WORK // (N_DRAWS * len(classes) * n_votes), 1)
    groups = [np.flatnonzero(truth == c) for c in classes]
    sizes = np.array([len(group) for group in groups])
    kept = sizes
    if len(truth) > room:
        part = np.maximum(np.ceil(sizes * (room / len(truth))), FEWEST_OF_CLASS)
        kept = np.minimum(sizes, part.astype(np.intp))
        groups = [
            rng.choice(group, size, replace=False)
            for group, size in zip(groups, kept, strict=True)
        ]
    return np.concatenate(groups), np.repeat(sizes / np.maximum(kept, 1), kept)


def _weights_of_rows(
    rng: np.random.RandomState, truth: Labels, classes: Labels, scale: Floats
) -> Any:
    """Batches of draws: their slice, and how often each row occurs, (draws, rows)."""
    for start in range(0, N_DRAWS, BLOCK):
        n = min(BLOCK, N_DRAWS - start)
        weight = np.empty((n, len(truth)))
        for rows in (np.flatnonzero(truth == c) for c in classes):
            if not len(rows):
                continue
            taken = rng.randint(len(rows), size=(n, len(rows)))
            taken += np.arange(n)[:, None] * len(rows)
            counts = np.bincount(taken.reshape(-1), minlength=n * len(rows))
            weight[:, rows] = counts.reshape(n, len(rows))
        yield slice(start, start + n), weight * scale


def draw_pairs(
    rng: np.random.RandomState,
    truth: Labels,
    decided: list[Labels],
    n_classes: int,
    blocks: Labels | None,
) -> list[Floats]:
    """Confusion tables of both models: the actual ones, then paired draws."""
    tables = [np.zeros((1 + N_DRAWS, n_classes, n_classes)) for _ in decided]
    if blocks is not None:
        numbers = np.unique(blocks, return_inverse=True)[1].reshape(-1)
        times = _times_of_blocks(rng, truth, numbers)
        times = np.concatenate([np.ones((1, times.shape[1])), times])
        for table, named in zip(tables, decided, strict=True):
            cells = (numbers * n_classes + truth) * n_classes + named
            by_block = np.bincount(cells, minlength=times.shape[1] * n_classes**2)
            drawn = times @ by_block.reshape(-1, n_classes**2).astype(float)
            table[:] = drawn.reshape(table.shape)
        return tables
    for c in np.unique(truth):
        rows = truth == c
        pairs = decided[0][rows] * n_classes + decided[1][rows]
        cells, counts = np.unique(pairs, return_counts=True)
        size = counts.sum()
        drawn = rng.multinomial(size, counts / size, size=N_DRAWS)
        drawn = np.concatenate([counts[None, :], drawn])
        for table, named in zip(tables, divmod(cells, n_classes), strict=True):
            table[:, c] = drawn @ np.eye(n_classes)[named]
    return tables


def draw_gains(
    rng: np.random.RandomState,
    truth: Labels,
    votes: Floats,
    others: Floats,
    classes: Labels,
    blocks: Labels | None,
) -> tuple[float, Floats]:
    """The difference in mean average precision, and draws of it."""
    reported = classes[: votes.shape[1]]
    there = np.isin(reported, truth)

    def gain(some: Labels, weight: Floats) -> Floats:
        found, theirs = (
            rank_figures(truth[some], vote[some], reported, weight, only_ap=True)
            for vote in (votes, others)
        )
        return class_means((found - theirs)[0, there].T)

    if blocks is None:
        return _draws_of(rng, truth, classes, gain, None)
    numbers = np.unique(blocks, return_inverse=True)[1].reshape(-1)
    times = _times_of_blocks(rng, truth, numbers)
    found, theirs = (
        [
            _ranks_of_blocks(truth == c, vote[:, at], numbers, times)[0]
            for at, c in enumerate(reported)
            if there[at]
        ]
        for vote in (votes, others)
    )
    exact = float(gain(np.arange(len(truth)), np.ones((1, len(truth))))[0])
    return exact, class_means(np.subtract(found, theirs).T)


def draw_top_gains(
    rng: np.random.RandomState,
    truth: Labels,
    ours: Floats,
    other: Floats,
    top: float,
    blocks: Labels | None,
) -> tuple[float, Floats]:
    """The difference in recall among the ``top`` share of rows, and draws of it.

    Each draw has its own cut, at the same number of rows in both rankings.
    """

    def gain(some: Labels, weight: Floats) -> Floats:
        found, theirs = (
            recall_of_top(vote[some], truth[some] == 1, weight, top)
            for vote in (ours, other)
        )
        return np.asarray(found - theirs)

    return _draws_of(rng, truth, np.arange(2), gain, blocks)


def _draws_of(
    rng: np.random.RandomState,
    truth: Labels,
    classes: Labels,
    gain: Callable[[Labels, Floats], Floats],
    blocks: Labels | None,
) -> tuple[float, Floats]:
    """The difference of two rankings on all rows, and on draws of rows or blocks."""
    exact = float(gain(np.arange(len(truth)), np.ones((1, len(truth))))[0])
    rows, scale = _thinned(rng, truth, classes, 2)
    plain = float(gain(rows, scale[None, :])[0])
    draws = np.empty(N_DRAWS)
    drawn = _weights_of_rows(rng, truth[rows], classes, scale)
    if blocks is not None:
        numbers = np.unique(blocks, return_inverse=True)[1].reshape(-1)
        times = _times_of_blocks(rng, truth, numbers)
        parts = [slice(start, start + BLOCK) for start in range(0, N_DRAWS, BLOCK)]
        drawn = ((part, times[part][:, numbers[rows]] * scale) for part in parts)
    for block, weight in drawn:
        draws[block] = gain(rows, weight)
    # Centre on the value of all rows, not of the thinned ones.
    return exact, draws + (exact - plain)
