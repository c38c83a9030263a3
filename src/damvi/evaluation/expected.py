"""Expected scores on unlabelled rows, from the model's own probabilities.

A calibrated probability says what share of rows like this one is positive, so precision,
recall and average precision can be estimated before labels arrive. Two sources of
uncertainty are simulated: the labels given the probabilities, and the probabilities, which
were learned from a finite number of training rows (a bootstrap of out-of-sample votes).

Either P(y|x) is assumed unchanged, whatever rows come (covariate shift), or P(x|y) is, and
only the class rates may have changed (label shift). Votes alone cannot tell both at once.

Rows with similar votes and the same decision share a cell; labels are drawn per cell.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..decision import calibrate_vote, decide, tune_threshold
from ..decision.objectives import Fixed, Untuned
from ..labels import vote_columns
from ..selection import objective_of
from .draws import confusion, of_tables, rank_figures
from .measures import HEADLINES, Figure
from .rows import Judged

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]
Curve = Callable[[Floats], Floats]

N_CURVES = 120
"""Bootstrap draws of the calibration ..."""
N_LABELS = 5
"""... and draws of the labels for each."""
N_OWN = 500
"""Draws of the labels by the model's own calibration, for the expected values."""
MOST_CELLS = 2000
MOST_WORK = 1 << 27
"""Limit on cells times draws times squared classes."""
MOST_RANKED = 20
"""With more classes, average precision is not simulated."""
MOST_USUAL = 2000
"""Representatives of the most frequent class's training rows in the bootstrap."""
BLOCK = 50
"""Draws per block."""
TRIES = 50
"""Attempts to draw training rows of all classes."""
MOST_STEPS = 2000
LEAST = 1e-12
"""Floor for probabilities in a denominator."""

ASSUMPTIONS = {
    "P(y|x)": "Assuming that rows with the same values are labelled as in "
    "training (P(y|x) is unchanged)",
    "P(x|y)": "Assuming that only the class rates changed (label shift: P(x|y) is "
    "unchanged)",
}
"""The start of a sentence on expected scores."""


@dataclass(frozen=True, eq=False)
class Expected:
    """Expected scores of a model's decisions.

    Attributes
    ----------
    rows : int
    flagged : int
        Rows predicted as the positive class; with three or more classes, as another than
        the most frequent one of the training rows.
    assumption : {"P(y|x)", "P(x|y)"}
        What is assumed to be the same as in training.
    overall : dict of str to Figure
        For two classes "precision", "recall", "f1" and "ap" of the positive one; for more
        "macro_f1", "balanced_accuracy" and "macro_ap".
    by_class : tuple of dict
        For each reported class: its expected "rows", the rows predicted as it ("named", a
        number), how many of those are "right", its "rate", "precision", "recall" and "f1".
    rates : ndarray of shape (C,)
        The class rates of the training rows.
    threshold : float or ndarray of shape (C,), or None
        Under label shift, the best threshold for the model's objective at the new class
        rates. None if its threshold was fixed.
    corrected : dict of str to Figure
        The expected scores at this threshold.
    probability : ndarray of shape (n,) or (n, C)
        The probability of each row; under label shift at the new class rates.
    """

    rows: int
    flagged: int
    assumption: str
    overall: dict[str, Figure]
    by_class: tuple[dict[str, Any], ...]
    rates: Floats
    threshold: Any
    corrected: dict[str, Figure]
    probability: Floats

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""

        def plain(figures: dict[str, Any]) -> dict[str, Any]:
            return {
                name: one.as_dict() if isinstance(one, Figure) else one
                for name, one in figures.items()
            }

        cut = self.threshold
        return {
            "rows": self.rows,
            "flagged": self.flagged,
            "assumption": self.assumption,
            "words": ASSUMPTIONS[self.assumption],
            "figures": plain(self.overall),
            "classes": [plain(own) for own in self.by_class],
            "training_rates": self.rates.tolist(),
            "corrected_threshold": cut.tolist() if isinstance(cut, np.ndarray) else cut,
            "corrected_figures": plain(self.corrected),
        }


class Cells(NamedTuple):
    """Groups of rows with similar votes and the same decision."""

    vote: Floats
    """Mean votes, with a column for each reported class."""
    decided: Labels
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, vote: Floats, decided: Labels, usual: Floats, most: int) -> Cells:
        """About ``most`` cells, finest where the ``usual`` class is least likely."""
        place = np.empty(len(vote), np.intp)
        place[np.argsort(usual, kind="stable")] = _groups(len(vote), most)
        _, cell, counts = np.unique(
            np.stack([place, decided]), axis=1, return_inverse=True, return_counts=True
        )
        cell = cell.reshape(-1)
        means = [np.bincount(cell, column) / counts for column in vote.T]
        own = np.zeros(len(counts), np.intp)
        own[cell] = decided
        return cls(np.stack(means, axis=1), own, counts.astype(np.int64))


def _groups(n: int, most: int) -> Labels:
    """The group of each of n ranks: single at first, then ever larger."""
    if n <= most:
        return np.arange(n)
    alone = most // 2
    edges = np.geomspace(alone, n, most - alone + 1)[:-1].astype(np.intp)
    starts = np.union1d(np.arange(alone), edges)
    return np.asarray(np.searchsorted(starts, np.arange(n), side="right") - 1)


def expected_of(
    model: Any, judged: Judged, *, label_shift: bool = False
) -> Expected | None:
    """Expected scores of a table's model on rows it has scored.

    Parameters
    ----------
    model : ModelParts
        Its training rows determine how certain its probabilities are.
    judged : Judged
        Labels, if any, are not used.
    label_shift : bool, default=False

    Returns
    -------
    expected : Expected or None
        None if the model has no usable votes on training rows.
    """
    classifier, training = model.classifier, model.training
    some = judged.has_vote
    known = ~np.isnan(training.vote.reshape(len(training.vote), -1)).any(axis=1)
    labels = training.labels[known].astype(np.intp)
    n_classes = model.target.n_classes
    if not some.any() or len(np.unique(labels)) < n_classes:
        return None
    calibrator = classifier.decision_.calibrator
    if calibrator is None:
        calibrator = calibrate_vote(training.vote[known], labels)
    objective = objective_of(classifier)
    found = expected_figures(
        judged.vote[some],
        judged.decided[some],
        calibrator,
        (training.vote[known], labels),
        label_shift=label_shift,
        objective=None if isinstance(objective, (Fixed, Untuned)) else objective,
        order=classifier.labels_.target_order,
    )
    probability = np.full(judged.vote.shape, np.nan)
    probability[some] = found.probability
    if not label_shift:  # training rows keep their cross-fitted ones
        probability[some] = judged.probability[some]
    return replace(found, probability=probability)


def expected_figures(
    vote: ArrayLike,
    decided: ArrayLike,
    calibrator: Curve,
    training: tuple[ArrayLike, ArrayLike] | None = None,
    *,
    label_shift: bool = False,
    objective: Any = None,
    order: ArrayLike | None = None,
    seed: int = 0,
) -> Expected:
    """Expected scores of decisions, from votes on unlabelled rows.

    Parameters
    ----------
    vote : array of shape (n,) for two classes, (n, C) for more
    decided : array of int, shape (n,)
        The predicted class.
    calibrator : callable
        Maps votes to probabilities of the same shape.
    training : (vote, labels), optional
        Out-of-sample votes that the calibration was learned from. Without them, the
        probabilities are taken to be exact.
    label_shift : bool, default=False
        Assume that P(x|y) is unchanged instead of P(y|x), and estimate the class rates from
        the votes. Needs ``training``.
    objective : Objective, optional
        What to retune the threshold for under label shift.
    order : array of int, shape (C,), optional
        Classes in the order in which they win ties.
    seed : int, default=0

    Examples
    --------
    >>> import numpy as np
    >>> chance = np.array([0.9, 0.8, 0.5, 0.1, 0.1])
    >>> found = expected_figures(chance, chance > 0.6, lambda p: p)
    >>> round(found.overall["precision"].value, 2)  # of 0.9 and 0.8
    0.85
    >>> round(found.by_class[0]["rows"].value, 1)
    2.4
    """
    votes, reported, classes = vote_columns(vote)
    shape, n_classes = np.shape(vote), len(classes)
    named = np.asarray(decided, np.intp)
    ties = np.arange(n_classes) if order is None else np.asarray(order, np.intp)
    rng = np.random.default_rng([seed, 23])

    def chances(curve: Curve, columns: Floats) -> Floats:
        """Probabilities of all classes, (n, C)."""
        given = columns if len(shape) > 1 else columns[:, 0]
        found, _, _ = vote_columns(curve(given))
        rest = 1 - found.sum(axis=1, keepdims=True)
        return np.hstack([rest, found])[:, -n_classes:]

    own = chances(calibrator, votes)
    draws = N_CURVES * N_LABELS
    room = max(MOST_WORK // (draws * n_classes * n_classes), 200)
    usual = int(own.sum(axis=0).argmax())
    cells = Cells.of(votes, named, own[:, usual], min(MOST_CELLS, room))
    of_cells = chances(calibrator, cells.vote)
    known = None if training is None else _Training.of(*training, n_classes)
    before = own.mean(axis=0) if known is None else known.rates
    if label_shift:
        if known is None:
            raise ValueError("label_shift=True needs the training votes")
        rates = class_rates(of_cells, cells.counts, before)
        own, of_cells = (_at_rates(p, before, rates) for p in (own, of_cells))
    threshold, decisions = None, [cells.decided]
    if label_shift and objective is not None:
        threshold = _retuned(cells, of_cells, objective, ties, len(shape) > 1)
        moved = cells.vote if len(shape) > 1 else cells.vote[:, 0]
        decisions.append(decide(moved, threshold, ties))

    def probabilities() -> Iterator[Floats]:
        if known is None:
            yield from (of_cells for _ in range(N_CURVES))
            return
        plain = chances(calibrator, cells.vote)
        for curve, drawn_rates in known.curves(rng, N_CURVES):
            p = _moved(plain, chances(known.curve, cells.vote), chances(curve, cells.vote))
            if label_shift:
                # The new rates are uncertain, too: the rows are a sample.
                share = cells.counts / cells.counts.sum()
                some = rng.multinomial(cells.counts.sum(), share)
                p = _at_rates(p, drawn_rates, class_rates(p, some, drawn_rates, rates))
            yield p

    drawn = _draw(rng, cells, reported, probabilities(), N_LABELS, decisions)
    means = _draw(rng, cells, reported, iter([of_cells]), N_OWN, decisions)
    exact = np.zeros((len(decisions), n_classes, n_classes))
    for k, each in enumerate(decisions):
        for d in np.unique(each):
            exact[k, :, d] = cells.counts[each == d] @ of_cells[each == d]
    # For the model's own decisions, sums of probabilities are exact.
    exact[0] = [
        np.bincount(named, own[:, c], minlength=n_classes) for c in range(n_classes)
    ]
    unflagged = np.setdiff1d(np.arange(n_classes), reported)
    if not len(unflagged):
        unflagged = np.atleast_1d(before.argmax())
    told = [_figures(exact[k], means[k], drawn[k], reported) for k in range(len(decisions))]
    overall, by_class = told[0]
    return Expected(
        len(named),
        int((~np.isin(named, unflagged)).sum()),
        "P(x|y)" if label_shift else "P(y|x)",
        overall,
        by_class,
        before,
        threshold,
        told[1][0] if len(told) > 1 else {},
        own if len(shape) > 1 else own[:, 1],
    )


def achieved_figures(labels: Labels, vote: Floats, decided: Labels) -> dict[str, float]:
    """The same scores on labelled rows, as far as they are defined.

    Examples
    --------
    >>> import numpy as np
    >>> labels, vote = np.array([0, 1, 1]), np.array([0.1, 0.3, 0.2])
    >>> achieved_figures(labels, vote, np.array([0, 1, 0]))
    {'precision': 1.0, 'recall': 0.5, 'f1': 0.6666666666666666, 'ap': 1.0}
    """
    votes, reported, classes = vote_columns(vote)
    table = confusion(labels, decided, len(classes)).astype(np.float64)
    found = of_tables(table[None], None)
    ap = rank_figures(labels, votes, reported, np.ones((1, len(labels))), True)[0, :, 0]
    ap[table.sum(axis=1)[reported] == 0] = np.nan
    found["precision"][0, table.sum(axis=0) == 0] = np.nan  # nothing is flagged
    by_class = [
        {name: found[name][0, c] for name in ("precision", "recall", "f1")} | {"ap": own}
        for c, own in zip(reported, ap, strict=True)
    ]
    means = {name: found[name][0] for name in ("macro_f1", "balanced_accuracy")}
    told = _headline(by_class, means | {"macro_ap": _means(ap[None])[0]})
    return {name: float(one) for name, one in told.items() if not np.isnan(one)}


def _headline(by_class: list[dict[str, Any]], means: dict[str, Any]) -> dict[str, Any]:
    """The scores of the positive class, or the macro means."""
    if len(by_class) > 1:
        return means
    return {name: own for name, own in by_class[0].items() if name in HEADLINES[0]}


def _means(figures: Floats) -> Floats:
    """Row means over the classes that are present; NaN if none is."""
    known = ~np.isnan(figures)
    total, n = np.where(known, figures, 0.0).sum(axis=1), known.sum(axis=1)
    return np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0)


class _Drawn(NamedTuple):
    tables: Floats
    """Confusion tables, (draws, C, C)."""
    ap: Floats | None
    """Average precision of the reported classes, (draws, R)."""


def _draw(
    rng: np.random.Generator,
    cells: Cells,
    reported: Labels,
    probabilities: Iterator[Floats],
    n_labels: int,
    decisions: list[Labels],
) -> list[_Drawn]:
    """Draw labels from each set of probabilities, and count them by decision."""
    n, n_columns = cells.vote.shape
    tables: list[list[Floats]] = [[] for _ in decisions]
    ranks: list[Floats] = []
    truth = vote = None
    for p in probabilities:
        for start in range(0, n_labels, BLOCK):
            size = (min(BLOCK, n_labels - start), n)
            labels = rng.multinomial(cells.counts, p, size=size)
            for found, each in zip(tables, decisions, strict=True):
                table = np.zeros((len(labels), p.shape[1], p.shape[1]))
                for d in np.unique(each):
                    table[:, :, d] = labels[:, each == d].sum(axis=1)
                found.append(table)
            if n_columns > MOST_RANKED:
                continue
            if truth is None:
                truth = np.tile(np.arange(p.shape[1]), n)
                vote = np.repeat(cells.vote, p.shape[1], axis=0)
            assert vote is not None
            weight = labels.reshape(len(labels), -1).astype(np.float64)
            ranks.append(rank_figures(truth, vote, reported, weight, only_ap=True)[0].T)
    ap = np.concatenate(ranks) if ranks else None
    return [_Drawn(np.concatenate(found), ap) for found in tables]


def _figures(
    exact: Floats, means: _Drawn, drawn: _Drawn, reported: Labels
) -> tuple[dict[str, Figure], tuple[dict[str, Any], ...]]:
    """Overall scores, and those by class; ``exact`` is the expected confusion table."""
    mean, draws = of_tables(means.tables, None), of_tables(drawn.tables, None)
    sizes, right = drawn.tables.sum(axis=2), np.diagonal(drawn.tables, axis1=1, axis2=2)
    total = float(exact.sum())

    def around(value: float, some: Floats, most: float = 1.0) -> Figure:
        if np.isnan(some).all():  # no row of the class in any draw
            return Figure(value, 0.0, most, 0.0)
        return Figure.around(value, some, 0.0, most)

    def mean_of(figures: Floats) -> float:
        return 0.0 if np.isnan(figures).all() else float(np.nanmean(figures))

    by_class: list[dict[str, Any]] = []
    for at, c in enumerate(reported.tolist()):
        own_rows, flagged = float(exact[c].sum()), float(exact[:, c].sum())
        own = {
            "rows": around(own_rows, sizes[:, c], total),
            "named": round(flagged),
            "right": around(float(exact[c, c]), right[:, c], flagged),
            "rate": around(own_rows / total, sizes[:, c] / total),
        }
        if flagged:
            share = float(exact[c, c]) / flagged
            own["precision"] = around(share, draws["precision"][:, c])
        else:  # unknown if nothing is flagged
            own["precision"] = Figure(0.0, 0.0, 1.0, 0.0)
        for name in ("recall", "f1"):
            own[name] = around(mean_of(mean[name][:, c]), draws[name][:, c])
        if means.ap is not None and drawn.ap is not None:
            own["ap"] = around(mean_of(means.ap[:, at]), drawn.ap[:, at])
        by_class.append(own)
    means_of = {
        name: around(mean_of(mean[name]), draws[name])
        for name in ("macro_f1", "balanced_accuracy")
    }
    if means.ap is not None and drawn.ap is not None:
        moved = _means(drawn.ap)
        means_of["macro_ap"] = around(mean_of(_means(means.ap)), moved)
    return _headline(by_class, means_of), tuple(by_class)


class _Training(NamedTuple):
    """Training rows for bootstrapping the calibration, and the curve of all of them."""

    vote: Floats
    labels: Labels
    weight: Floats
    rates: Floats
    curve: Curve

    @classmethod
    def of(cls, vote: ArrayLike, labels: ArrayLike, n_classes: int) -> _Training:
        votes, truth = np.asarray(vote, np.float64), np.asarray(labels, np.intp)
        sizes = np.bincount(truth, minlength=n_classes)
        usual = int(sizes.argmax())
        rows = np.flatnonzero(truth == usual)
        columns, reported, _ = vote_columns(votes)
        towards = (columns * np.where(reported == usual, 1, -1))[rows].sum(axis=1)
        group = _groups(len(rows), MOST_USUAL)
        first = np.flatnonzero(np.diff(group, prepend=-1))
        members = np.bincount(group)
        # The middle one represents its group.
        taken = rows[np.argsort(towards, kind="stable")][first + members // 2]
        others = np.flatnonzero(truth != usual)
        kept = np.concatenate([taken, others])
        weight = np.concatenate([members, np.ones(len(others))])
        votes, truth = votes[kept], truth[kept]
        curve = calibrate_vote(votes, truth, sample_weight=weight)
        return cls(votes, truth, weight, sizes / sizes.sum(), curve)

    def curves(self, rng: np.random.Generator, n: int) -> Iterator[tuple[Curve, Floats]]:
        """Calibration curves of bootstrap draws, and the class rates of each."""
        n_rows, n_classes = len(self.labels), len(self.rates)
        for _ in range(n):
            for _ in range(TRIES):
                rows = rng.integers(n_rows, size=n_rows)
                if len(np.unique(self.labels[rows])) == n_classes:
                    break
            else:  # a class of one row
                rows = np.arange(n_rows)
            vote, truth, weight = self.vote[rows], self.labels[rows], self.weight[rows]
            mass = np.bincount(truth, weight, minlength=n_classes)
            yield calibrate_vote(vote, truth, sample_weight=weight), mass / mass.sum()


def _moved(own: Floats, before: Floats, after: Floats) -> Floats:
    """Probabilities shifted, in log-odds, by the difference of two others."""
    ratio = np.maximum(after, LEAST) / np.maximum(before, LEAST)
    return _scaled(own * ratio)


def _scaled(p: Floats) -> Floats:
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _at_rates(p: Floats, before: Floats, rates: Floats) -> Floats:
    """Probabilities corrected to other class rates."""
    return _scaled(np.maximum(p, LEAST) * (rates / before))


def class_rates(
    probability: ArrayLike,
    counts: ArrayLike,
    before: ArrayLike,
    start: ArrayLike | None = None,
) -> Floats:
    """Maximum-likelihood class rates, if P(x|y) is as in training.

    Uses the EM iteration of Saerens, Latinne and Decaestecker (2002), which climbs to the
    single maximum of the likelihood and uses all of each vote. Matching the share of
    flagged rows instead depends on a false-alarm rate that is itself as large as a class
    rate of 0.2%. Its errors were larger at every rate tried up to 1%, and smaller at 2 and
    5% (``results/worth``).

    Parameters
    ----------
    probability : array of shape (n, C)
        Probabilities at the rates ``before``.
    counts : array of shape (n,)
        How many rows each represents.
    before : array of shape (C,)
    start : array of shape (C,), optional
        Starting point; by default ``before``.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[0.99, 0.01], [0.1, 0.9]])
    >>> class_rates(p, [60, 40], before=[0.9, 0.1]).round(2)
    array([0.57, 0.43])
    """
    prior = np.asarray(before, np.float64)
    likelihood = np.maximum(np.asarray(probability, np.float64), LEAST) / prior
    rows = np.asarray(counts, np.float64)
    share, least = rows / rows.sum(), 0.5 / rows.sum()
    rates = np.array(prior if start is None else start, np.float64)
    for _ in range(MOST_STEPS):
        joint = likelihood * rates
        moved = share @ (joint / joint.sum(axis=1, keepdims=True))
        moved = np.maximum(moved, least)  # half a row, so that no class vanishes for good
        done = np.abs(moved - rates).max() <= 1e-4 * moved.min()
        rates = moved
        if done:
            break
    return np.asarray(rates / rates.sum())


def _retuned(cells: Cells, p: Floats, objective: Any, order: Labels, by_class: bool) -> Any:
    """The best threshold for the objective, given the expected labels."""
    n_classes = p.shape[1]
    vote = np.repeat(cells.vote, n_classes, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an unreachable floor
        return tune_threshold(
            vote if by_class else vote[:, 0],
            np.tile(np.arange(n_classes), len(p)),
            objective,
            sample_weight=(cells.counts[:, None] * p).reshape(-1),
            order=order,
        )
