"""Compare DAMVI with other models on one table, over repeated splits.

All contenders are trained on the same rows of each split, with a threshold tuned for F1 on
out-of-fold training rows, and scored on the same test rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import average_precision_score, f1_score
from sklearn.model_selection import (
    GroupShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline

from ._compat import take_rows
from .contenders import CONTENDERS, make_contender
from .decision import decide, tune_threshold
from .evaluation.measures import hits_in_top
from .labels import Labels
from .messages import counted
from .validation import require_number_of_rows
from .voters import NumberEncoder

__all__ = ["Comparison", "available_contenders", "compare"]

LEVEL = 0.05
FOLDS = 5
METRICS = {"f1": "F1", "ap": "AP"}
OF_TOP = ("precision", "recall")
"""Scores of the top test rows, if requested."""
REFERENCES = ("DAMVI-strong", "DAMVI")
"""What the others are compared with: the first of these that is present."""

Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]
Follow = Callable[[int, int, dict[str, Any]], None]


def columns(top: int | None = None) -> list[str]:
    """The columns of the scores."""
    of_top = [] if top is None else [f"top_{name}" for name in OF_TOP]
    return ["contender", "split", *METRICS, *of_top, "fit_seconds", "note"]


def available_contenders() -> tuple[list[str], dict[str, str]]:
    """The contenders that are installed, and the package that each other one needs."""
    names, missing = [], {}
    for name, contender in CONTENDERS.items():
        try:
            make_contender(name)
        except ImportError:
            missing[name] = contender.needs
        else:
            names.append(name)
    return names, missing


def compare(
    X: Any,
    y: ArrayLike,
    contenders: Sequence[str] | None = None,
    *,
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    n_splits: int = 10,
    test_size: float = 0.3,
    top: int | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    known: pd.DataFrame | None = None,
    follow: Follow | None = None,
) -> Comparison:
    """Compare contenders on a table, over repeated stratified splits.

    Parameters
    ----------
    X : DataFrame or array of shape (n, n_features)
        Numbers (NaN where missing) and, in a DataFrame, categories.
    y : array of shape (n,)
        Labels of two classes or more.
    contenders : sequence of str, optional
        Names from :data:`damvi.contenders.CONTENDERS`. Default: all installed ones.
    pos_label : label, optional
        With two classes, the positive one. Default: the rarer.
    groups : array of shape (n,), optional
        Groups of rows to keep together, in the training or the test rows.
    n_splits : int, default=10
    test_size : float, default=0.3
        The share of test rows (or of groups, if given).
    top : int, optional
        Also report precision and recall among the ``top`` highest-scoring test rows of each
        split, as for an alert budget. With three or more classes, means over the classes.
    random_state : int, default=0
        Split number s, and every model in it, uses the seed ``random_state + s``.
    n_jobs : int, optional
        Threads or processes per model; models are trained one after the other.
    known : DataFrame, optional
        Scores of an earlier run with the same rows and settings, to reuse.
    follow : callable, optional
        Called after each fit with the number done, the total and the scores.

    Returns
    -------
    comparison : Comparison

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from damvi.benchmark import compare
    >>> X, y = make_classification(400, weights=[0.9], random_state=0)
    >>> found = compare(X, y, ["DAMVI", "uniform", "RF"], n_splits=2)
    >>> found.scores.shape, found.reference
    ((6, 6), 'DAMVI')
    """
    names = list(available_contenders()[0] if contenders is None else contenders)
    for name in names:
        make_contender(name)  # fails early if something is wrong
    labels, targets = Labels.read(np.asarray(y), pos_label)
    if top is not None:
        require_number_of_rows(top, "top")
    codes = targets.astype(np.intp)
    whole = None if groups is None else np.unique(groups, return_inverse=True)[1]
    done = _as_rows(known)
    pending = [
        (split, name)
        for split in range(n_splits)
        for name in names
        if (name, split) not in done
    ]
    for number, (split, name) in enumerate(pending, 1):
        seed = random_state + split
        train, test = _split(codes, whole, test_size, seed)
        row = {"contender": name, "split": split, "note": ""}
        row |= _score(name, X, codes, labels, whole, train, test, seed, n_jobs, top)
        done[name, split] = row
        if follow is not None:
            follow(number, len(pending), row)
    rows = [done[name, split] for name in names for split in range(n_splits)]
    scores = pd.DataFrame(rows, columns=columns(top))
    return Comparison(scores, test_size, labels.n_classes, top)


def _as_rows(known: pd.DataFrame | None) -> dict[tuple[str, int], dict[str, Any]]:
    """Scores by contender and split; failed ones are tried again."""
    if known is None:
        return {}
    rows = known[known["f1"].notna()].to_dict("records")
    return {(row["contender"], row["split"]): {**row, "note": ""} for row in rows}


def _split(
    y: NDArray[np.intp], groups: NDArray[np.intp] | None, test_size: float, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    kind = StratifiedShuffleSplit if groups is None else GroupShuffleSplit
    splits = kind(1, test_size=test_size, random_state=seed)
    train, test = next(splits.split(np.zeros(len(y)), y, groups))
    return train, test


def _score(
    name: str,
    X: Any,
    y: NDArray[np.intp],
    labels: Labels,
    groups: NDArray[np.intp] | None,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    seed: int,
    n_jobs: int | None,
    top: int | None,
) -> dict[str, Any]:
    """F1, average precision and fit time, or a note on what went wrong."""
    X_train, X_test = take_rows(X, train), take_rows(X, test)
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make_contender(name, random_state=seed, n_jobs=n_jobs)
            folds = _folds(y[train], None if groups is None else groups[train], seed)
            model = _tuned(name, model, folds, labels).fit(X_train, y[train])
            seconds = time.perf_counter() - start
            predicted = np.asarray(model.predict(X_test)).ravel().astype(np.intp)
            chances = model.predict_proba(X_test)
    except Exception as error:
        note = " ".join(f"{type(error).__name__}: {error}".split())
        return dict.fromkeys(columns(top)[2:], np.nan) | {"note": note[:300]}
    return {"fit_seconds": seconds, **_measure(y[test], predicted, chances, labels, top)}


def _measure(
    y: NDArray[np.intp],
    predicted: NDArray[np.intp],
    chances: NDArray[np.float64],
    labels: Labels,
    top: int | None,
) -> dict[str, float]:
    """Means over the reported classes that occur."""
    reported = labels.reported.tolist()
    there = [c for c in reported if (y == c).any()] or reported
    f1 = f1_score(y, predicted, labels=there, average="macro", zero_division=0)
    ap = np.mean([average_precision_score(y == c, chances[:, c]) for c in there])
    found = {"f1": float(f1), "ap": float(ap)}
    if top is None:
        return found
    number = min(top, len(y))
    hits = [hits_in_top(y == c, chances[:, c], np.array([number])).item() for c in there]
    sizes = [max(int((y == c).sum()), 1) for c in there]
    recalls = [hit / size for hit, size in zip(hits, sizes, strict=True)]
    told = float(np.mean(hits)) / number, float(np.mean(recalls))
    return found | {f"top_{name}": one for name, one in zip(OF_TOP, told, strict=True)}


def _folds(y: NDArray[np.intp], groups: NDArray[np.intp] | None, seed: int) -> Folds:
    """The folds of the training rows for tuning thresholds."""
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    folds = kind(FOLDS, shuffle=True, random_state=seed)
    return list(folds.split(np.zeros(len(y)), y, groups))


def _tuned(name: str, model: Any, folds: Folds, labels: Labels) -> Any:
    """The model with its threshold tuned for F1 (macro F1) on out-of-fold rows."""
    objective = labels.tuned_for
    if name == "DAMVI-strong":
        return model.set_params(threshold=objective, cv=folds)
    if name in ("DAMVI", "uniform"):
        return model.set_params(threshold=objective, stratified=True)
    return _TunedClassifier(make_pipeline(NumberEncoder(), model), labels, folds)


class _TunedClassifier(ClassifierMixin, BaseEstimator):
    """A model with the best out-of-fold threshold or class factors."""

    def __init__(self, estimator: Any, labels: Labels, cv: Folds) -> None:
        self.estimator = estimator
        self.labels = labels
        self.cv = cv

    def fit(self, X: Any, y: NDArray[np.intp]) -> Self:
        unseen = cross_val_predict(self.estimator, X, y, cv=self.cv, method="predict_proba")
        self.classes_ = np.unique(y)
        objective = self.labels.tuned_for
        self.threshold_ = tune_threshold(self._vote(unseen), y, objective, smooth=True)
        self.estimator_ = clone(self.estimator).fit(X, y)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(self.estimator_.predict_proba(X))

    def predict(self, X: Any) -> NDArray[np.intp]:
        return decide(self._vote(self.predict_proba(X)), self.threshold_)

    def _vote(self, chances: NDArray[np.float64]) -> NDArray[np.float64]:
        """The probabilities of the reported classes."""
        return self.labels.as_vote(chances[:, self.labels.reported])


def paired_p(differences: ArrayLike, test_size: float) -> float:
    """The p-value of Nadeau and Bengio's corrected resampled t-test, two-sided.

    The splits share rows, so their scores are not independent; the variance of the mean
    difference is inflated accordingly. NaN for fewer than two splits.

    Examples
    --------
    >>> round(paired_p([0.02, 0.03, 0.01, 0.03, 0.02], 0.3), 3)
    0.029
    """
    d = np.asarray(differences, dtype=np.float64)
    if len(d) < 2:
        return float("nan")
    mean, variance = d.mean(), d.var(ddof=1)
    if variance == 0:
        return 1.0 if mean == 0 else 0.0
    scale = (1 / len(d) + test_size / (1 - test_size)) * variance
    return float(2 * student.sf(abs(mean) / np.sqrt(scale), len(d) - 1))


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """P-values adjusted by Holm's method; NaNs are ignored.

    Examples
    --------
    >>> holm([0.04, 0.01, 0.03]).tolist()
    [0.06, 0.03, 0.06]
    """
    p = np.asarray(p, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    adjusted = np.full(len(p), np.nan)
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted


@dataclass(frozen=True, eq=False)
class Comparison:
    """The result of :func:`compare`. ``print`` it to read it.

    Attributes
    ----------
    scores : DataFrame
        One row per contender and split: ``f1``, ``ap`` (macro means for three or more
        classes), ``top_precision`` and ``top_recall`` if requested, ``fit_seconds``, and a
        ``note`` if it failed.
    test_size : float
    n_classes : int
    top : int or None
        The number of top test rows per split.
    """

    scores: pd.DataFrame
    test_size: float
    n_classes: int = 2
    top: int | None = None

    @property
    def metrics(self) -> dict[str, str]:
        """The metrics: columns of ``scores``, and their headings."""
        if self.top is None:
            return METRICS
        return METRICS | {f"top_{name}": f"{name}@{self.top:,}" for name in OF_TOP}

    @property
    def reference(self) -> str | None:
        """The contender that others are compared with."""
        names = set(self.scores["contender"])
        return next((name for name in REFERENCES if name in names), None)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row per contender.

        For each metric: mean and standard deviation over the splits, the Holm-adjusted
        p-value of the paired comparison with ``reference``, and a mark: "↓" significantly
        worse, "↑" significantly better, or none. Also the median of ``fit_seconds``, the
        number of splits done, and notes.
        """
        by_name = self.scores.groupby("contender", sort=False)
        table = pd.DataFrame(index=list(by_name.groups))
        for metric in self.metrics:
            wide = self.scores.pivot(index="split", columns="contender", values=metric)
            wide = wide[table.index]
            table[metric] = wide.mean()
            table[f"{metric}_std"] = wide.std(ddof=1)
            p = np.full(len(table), np.nan)
            gaps = wide * np.nan
            if self.reference is not None:
                gaps = wide.sub(wide[self.reference], axis=0)
                p = holm(
                    [
                        np.nan
                        if name == self.reference
                        else paired_p(gaps[name].dropna(), self.test_size)
                        for name in table.index
                    ]
                )
            table[f"{metric}_p"] = p
            marks = np.where(gaps.mean() < 0, "↓", "↑")
            table[f"{metric}_mark"] = np.where(p < LEVEL, marks, "")
        table["fit_seconds"] = by_name["fit_seconds"].median()
        table["splits"] = by_name["f1"].count()
        table["note"] = by_name["note"].agg(
            lambda notes: "; ".join(dict.fromkeys(note for note in notes if note))
        )
        return table

    @property
    def caption(self) -> str:
        """A caption that explains the table and its marks."""
        n = self.scores["split"].nunique()
        mean = "mean ± standard deviation" if n > 1 else "scores"
        what = "F1 and average precision"
        if self.n_classes > 2:
            what = f"Macro F1 and macro average precision of {self.n_classes} classes"
        if self.top is not None:
            rows = counted(self.top, "top test row")
            what = f"{what}, and precision and recall in the {rows},"
        train = round(100 - 100 * self.test_size)
        text = f"{what} over {counted(n, 'split')} ({train}/{100 - train}): {mean}."
        if self.reference is None or n < 2:
            return f"{text} Best in bold."
        return (
            f"{text} Best in bold; ↓ significantly worse, ↑ significantly better than "
            f"{self.reference} (paired t-test corrected for overlapping splits, Holm, "
            f"p < {LEVEL})."
        )

    def _rows(
        self, bold: str, escape: Callable[[str], str] = str
    ) -> tuple[list[list[str]], list[str]]:
        """The cells of the table as text, with the best in ``bold``, and footnotes."""
        table, notes, rows = self.summary, list[str](), []
        n = self.scores["split"].nunique()
        for name in table.index:
            line = table.loc[name]
            cells = [escape(str(name))]
            for metric in self.metrics:
                if np.isnan(line[metric]):
                    cells.append("failed")
                    continue
                text = f"{line[metric]:.3f}"
                text = bold.format(text) if line[metric] == table[metric].max() else text
                spread, mark = line[f"{metric}_std"], line[f"{metric}_mark"]
                tail = "" if np.isnan(spread) else f" ± {spread:.3f}"
                cells.append(text + escape(f"{tail} {mark}".rstrip()))
            seconds = line["fit_seconds"]
            cells.append("" if np.isnan(seconds) else f"{seconds:.3g}")
            if line["splits"] < n:
                note = f"{name}: {line['splits']} of {n} splits. {line['note']}"
                notes.append(escape(note))
                cells[0] += f" [{len(notes)}]"
            rows.append(cells)
        return rows, notes

    def to_markdown(self) -> str:
        """The table in Markdown."""
        rows, notes = self._rows("**{}**")
        head = ["", *self.metrics.values(), "seconds"]
        lines = [self.caption, "", *(f"| {' | '.join(row)} |" for row in [head, *rows])]
        lines.insert(3, f"|:--|{'--:|' * (len(head) - 1)}")
        for number, note in enumerate(notes, 1):
            lines += ["", f"[{number}] {note}"]
        return "\n".join(lines) + "\n"

    def to_latex(self) -> str:
        """The table in LaTeX; no packages needed."""
        rows, notes = self._rows(r"\textbf{{{}}}", _latex)
        head = ["", *self.metrics.values(), "seconds"]
        body = [" & ".join(row) + r" \\" for row in [head, *rows]]
        body[0] += r" \hline"
        return "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{_latex(self.caption)}}}",
                r"\centering",
                rf"\begin{{tabular}}{{l|{'r' * (len(head) - 1)}}}",
                r"\hline",
                *body,
                r"\hline",
                r"\end{tabular}",
                *(f"\n[{n}] {note}" for n, note in enumerate(notes, 1)),
                r"\end{table}",
                "",
            ]
        )

    def to_terminal(self) -> Any:
        """A renderable for ``rich.console.Console.print``."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        rows, notes = self._rows("[bold]{}[/bold]")
        table = Table(box=None, header_style="bold", pad_edge=False)
        table.add_column("", no_wrap=True)
        for name in (*self.metrics.values(), "seconds"):
            table.add_column(name, justify="right", no_wrap=True)
        for name, *cells in rows:
            table.add_row(Text(name), *map(Text.from_markup, cells))  # names may have [1]
        below = [Text(f"[{number}] {note}") for number, note in enumerate(notes, 1)]
        return Group(Text(self.caption), Text(""), table, *below)

    def __str__(self) -> str:
        return self.to_markdown()


_LATEX = {
    "±": r"$\pm$",
    "↓": r"$\downarrow$",
    "↑": r"$\uparrow$",
    "<": "$<$",
    ">": "$>$",
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def _latex(text: str) -> str:
    """Escape text for LaTeX; unsupported characters become question marks."""
    return "".join(_LATEX.get(sign, sign if sign.isascii() else "?") for sign in text)
