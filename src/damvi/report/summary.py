"""The contents of the report as plain values."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import certify
from ..evaluation import (
    MEASURES,
    Figures,
    alike_words,
    confusion,
    headlines,
    measure,
    share,
    table_fingerprint,
    voter_weights,
    voters_on,
)
from ..explanation import as_text, importances
from ..io import library_versions
from .columns import effects, segments
from .curves import calibration, distribution, offer_cuts
from .table import JudgedTable

if TYPE_CHECKING:
    from ..io import ModelParts

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

MAX_ROWS = 50
MOST_DOWNLOADED = 5000
"""Rows offered for download, within a limit on the characters of their values."""
MOST_CHARACTERS = 400_000
MAX_COLUMNS = 12
MOST_PAIRS = 10
MOST_VIEWS = 20
"""Classes with their own charts; if there are more, the rarest."""

UNLABELLED = "Without labels, the voters cannot be evaluated."
KNOWN_ROWS = (
    "The voters were trained on rows of this table, so they cannot be evaluated here. Run "
    "the report on new rows to compare them."
)
NO_PROMISE = (
    "Training rows cannot support a guarantee. Set some labelled rows aside, use them for "
    "nothing else, and run the report on those."
)


def summarise(
    model: ModelParts,
    frame: Any,
    target: str | None = None,
    *,
    name: str = "",
    command: str = "",
) -> dict[str, Any]:
    """The contents of the page, ready for JSON and for the template.

    Parameters
    ----------
    model : ModelParts
    frame : DataFrame
        As from :func:`damvi.tables.read_table`. Training rows are scored by their stored
        out-of-sample votes.
    target : str, optional
        The column of true labels. Default: the model's target, if the table has it.
    name : str, optional
        The name of the data, such as the file name.
    command : str, optional
        The command that made the report.
    """
    table = JudgedTable.of(model, frame, target)
    features = [column.name for column in model.schema.used for _ in column.features]
    ranked = importances(model.classifier, table.X, features)
    judged = table.judged
    summary: dict[str, Any] = {
        "name": name,
        "target": {
            "name": table.target,
            "positive": model.target.positive or None,
            "negative": model.target.negative or None,
        },
        "labelled": judged.labels is not None,
        "threshold": None,
        "factors": None,
        "guarantee": _guaranteed(model.scores.get("guarantee")),
        **table.fitted.labels.told(table.fitted.threshold),
        "data": _data(table),
        "importances": ranked.as_dict(),
        "effects": effects(table.fitted, table.X, model.schema, list(ranked.names)),
        "repeat": {
            "command": command,
            "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "fingerprint": table_fingerprint(table.X, judged.labels),
            "versions": library_versions(set()),
            "model": model.made,
        },
    }
    if judged.labels is None:
        return summary | _without_truth(table, list(ranked.names))
    return summary | _with_truth(table, judged.labels, list(ranked.names))


def _data(table: JudgedTable) -> dict[str, Any]:
    """The number of rows, and what is in the columns."""
    judged = table.judged
    known, judgeable = int(judged.of_fit.sum()), int(judged.has_vote.sum())
    if not judgeable:
        raise ValueError("no row has an out-of-sample vote; give other rows")
    return {
        "rows": len(judged),
        "judged": judgeable,
        "of_fit": known,
        "new": len(judged) - known,
        # Only one in ``step`` training rows is remembered, and can be scored.
        "step": judged.step if judged.untold else 1,
        "words": judged.words,
        "alike": alike_words(judged.alike),
        "without_truth": table.without_truth,
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "reason": column.reason,
                **_values(table.frame, column.name),
            }
            for column in table.model.schema.columns
        ],
    }


def _values(frame: Any, name: str) -> dict[str, Any]:
    """The share of missing values of a column, and a summary of the others."""
    if name not in frame.columns:
        return {"missing": None, "values": "not in this table"}
    column = frame[name]
    missing = float(column.isna().mean()) if len(column) else 0.0
    there = column.dropna()
    if not len(there):
        return {"missing": missing, "values": "none"}
    if there.dtype.kind in "iuf":
        low, middle, high = (
            f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"
            for value in np.quantile(there.to_numpy(), [0, 0.5, 1])
        )
        return {"missing": missing, "values": f"{low} to {high}, median {middle}"}
    if there.dtype.kind == "M":
        return {"missing": missing, "values": f"{there.min()} to {there.max()}"}
    counts = there.astype(str).value_counts()
    top = ", ".join(str(value)[:30] for value in counts.index[:3])
    more = f" and {len(counts) - 3:,} more" if len(counts) > 3 else ""
    return {"missing": missing, "values": f"{top}{more}"}


def _without_truth(table: JudgedTable, ranked: list[str]) -> dict[str, Any]:
    judged, fitted = table.judged, table.fitted
    known = judged.has_vote
    named = np.bincount(judged.decided[known], minlength=fitted.n_classes)
    rare = fitted.labels.rare(named)
    return {
        "classes": [
            {
                "name": name,
                "rows": None,
                "rare": bool(rare[c]),
                "named": share(int(named[c]), int(known.sum())),
            }
            for c, name in enumerate(table.names)
        ],
        "views": _views(table, None, None, {}),
        "rows": _rows_to_look_at(table, ranked),
        "download": _download(table),
        "voters": {
            "known": False,
            "why": UNLABELLED,
            **voter_weights(fitted.weights, fitted.names),
        },
    }


def _with_truth(table: JudgedTable, labels: Labels, ranked: list[str]) -> dict[str, Any]:
    judged, fitted, scores = table.judged, table.fitted, table.model.scores
    known = judged.has_vote
    truth, decided, vote = labels[known], judged.decided[known], judged.vote[known]
    chance = judged.probability[known].reshape(len(truth), -1)
    counts = confusion(truth, decided, fitted.n_classes)
    figures, effects = None, dict.fromkeys(("precision", "recall"), (1.0,) * len(counts))
    effects["accuracy"] = (1.0,)
    if (counts.sum(axis=1) > 0).sum() > 1:
        given = chance if fitted.calibrates else None
        figures = measure(truth, vote, decided, given, blocks=judged.blocks)
        effects = figures.effects
    classes = _classes(table, counts, figures, effects)
    overall = {} if figures is None else figures.overall
    means = {"mean_found": "balanced_accuracy", "macro_f1": "macro_f1"}
    return {
        "classes": classes,
        "decision": {
            "confusion": counts.tolist(),
            "right": share(int(np.trace(counts)), int(counts.sum()), *effects["accuracy"]),
            # Design effects of dependent rows, for the script.
            "effects": {name: list(each) for name, each in effects.items()},
            **{
                name: overall[key].as_dict() if key in overall else None
                for name, key in means.items()
            },
        },
        "budget": table.budget(truth),
        "weights": table.weights(truth),
        "cost": scores.get("cost"),
        "scores": _scores(figures),
        "calibration_words": table.calibration_words,
        "segments": segments(
            table.model.schema,
            table.frame[known],
            table.X[known],
            decided,
            truth,
            table.usual,
        ),
        "views": _views(table, truth, chance, effects),
        "peers": _peers(scores),
        "voters": _voters(table, labels),
        "mixed_up": _mixed_up(counts, table.names),
        "rows": _rows_to_look_at(table, ranked),
        "download": _download(table),
        "certificate": _promise(table, labels),
    }


def _guaranteed(promise: Any) -> str:
    """The model's guarantee in a line; empty if it has none."""
    if not isinstance(promise, dict) or promise.get("threshold") is None:
        return ""
    parts = [f"{promise.get('words')}.", promise.get("price"), promise.get("basis")]
    return f"The threshold comes from a guarantee: {' '.join(map(str, parts))}"


def _classes(
    table: JudgedTable,
    counts: NDArray[Any],
    figures: Figures | None,
    effects: dict[str, tuple[float, ...]],
) -> list[dict[str, Any]]:
    """Each class: its frequency, and how well it is found."""
    labels, total = table.fitted.labels, int(counts.sum())
    rare = labels.rare(counts.sum(axis=1))
    by_class = () if figures is None else figures.by_class
    reported = dict(zip(labels.reported.tolist(), by_class, strict=False))
    classes = []
    for c, name in enumerate(table.names):
        rows, named, found = (
            int(counts[c].sum()),
            int(counts[:, c].sum()),
            int(counts[c, c]),
        )
        own = reported.get(c, {})
        known = {key: one.as_dict() for key, one in own.items() if one is not None}
        classes.append(
            {
                "name": name,
                "rows": rows,
                "rate": rows / max(total, 1),
                "rare": bool(rare[c]),
                "named": share(named, total),
                "precision": share(found, named, effects["precision"][c]),
                "recall": share(found, rows, effects["recall"][c]),
                **{key: known.get(key) for key in ("f1", "ap", "roc_auc")},
            }
        )
    return classes


def _scores(figures: Figures | None) -> list[dict[str, Any]]:
    """The scores, with intervals and chance levels."""
    if figures is None:
        return []
    return [
        {
            "key": key,
            "name": MEASURES[key],
            "value": figure.value,
            "low": figure.low,
            "high": figure.high,
            "chance": figures.chances.get(key),
        }
        for key, figure in figures.overall.items()
    ]


def _views(
    table: JudgedTable,
    truth: Labels | None,
    chance: Floats | None,
    effects: dict[str, tuple[float, ...]],
) -> list[dict[str, Any]]:
    """The chart data of each class, rarest first; with two, of the positive one.

    ``truth`` and ``chance`` are for the rows with a vote.
    """
    judged, labels = table.judged, table.fitted.labels
    known, reported = judged.has_vote, labels.reported
    votes, decided = judged.columns[known], judged.decided[known]
    counted = decided if truth is None else truth
    sizes = np.bincount(counted, minlength=labels.n_classes)
    order = table.charted(sizes, least=0 if truth is None else 1)
    told = labels.told(table.fitted.threshold)
    views = []
    for at in order[:MOST_VIEWS]:
        c, vote = int(reported[at]), votes[:, at]
        own = None if truth is None else truth == c
        view: dict[str, Any] = {
            "class": c,
            "name": table.names[c],
            "threshold": told.get("threshold"),
            "distribution": distribution(vote, own, labels.vote_limits),
        }
        if own is not None and chance is not None:
            near, cut, steps = table.standing(at)
            cuts = offer_cuts(near[known], own, cut, table.most_cuts, steps)
            named = decided == c
            found, alarms = int((own & named).sum()), int((~own & named).sum())
            view |= {
                "rate": float(own.mean()),
                "precision": share(found, found + alarms, effects["precision"][c]),
                "recall": share(found, cuts.positives, effects["recall"][c]),
                "alarm_rate": alarms / max(cuts.negatives, 1),
                "cuts": table.slider(cuts),
                "curves": cuts.curves() if own.any() and not own.all() else None,
                "calibration": calibration(chance[:, at], own),
            }
        views.append(view)
    return views


def _peers(scores: dict[str, Any]) -> dict[str, Any] | None:
    """Scores of the baselines when the model was fitted, if measured."""
    if not scores.get("models"):
        return None
    return {
        "rows": scores.get("rows_judged"),
        "verdicts": list(scores.get("verdicts", ())),
        "models": {
            name: {key: figures[key]["value"] for key in headlines(figures)}
            for name, figures in scores["models"].items()
        },
    }


def _voters(table: JudgedTable, labels: Labels) -> dict[str, Any]:
    """Voter statistics on rows they have not seen, or why there are none."""
    judged, fitted = table.judged, table.fitted
    classifier = table.model.classifier
    found = voters_on(classifier, table.X, labels, judged.decided, ~judged.of_fit)
    if found is None and table.model.scores.get("voters"):
        return dict(table.model.scores["voters"])
    weights = voter_weights(fitted.weights, fitted.names)
    return found or {"known": False, "why": KNOWN_ROWS, **weights}


def _mixed_up(counts: NDArray[Any], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The most frequent confusions between classes."""
    wrong = counts - np.diag(np.diagonal(counts))
    order = np.argsort(-wrong.reshape(-1), kind="stable")[:MOST_PAIRS]
    pairs = [divmod(int(at), len(names)) for at in order]
    return [
        {
            "truth": names[true],
            "decided": names[decided],
            "rows": int(counts[true, decided]),
            "of": int(counts[true].sum()),
        }
        for true, decided in pairs
        if wrong[true, decided]
    ]


def _rows_to_look_at(table: JudgedTable, ranked: list[str]) -> dict[str, Any]:
    """Tables of errors, and of rows found."""
    judged, some = table.judged, {}
    if judged.labels is not None:
        wrong = np.flatnonzero(judged.has_vote & (judged.decided != judged.labels))
        some = table.mistakes(wrong, judged.labels)
    some[table.found_as] = table.found()
    return {name: _rows(table, rows, ranked) for name, rows in some.items()}


def _download(table: JudgedTable) -> dict[str, Any]:
    """The rows offered for download, with all columns."""
    judged, names, frame = table.judged, table.names, table.frame
    rows = table.found()[:MOST_DOWNLOADED]
    columns = [str(name) for name in frame.columns]
    values = [[as_text(frame[name].iloc[i]) for name in columns] for i in rows]
    room = np.cumsum([sum(map(len, row)) + 8 * len(row) for row in values])
    rows = rows[: int(np.searchsorted(room, MOST_CHARACTERS))]
    decided = judged.decided[rows]
    told = zip(
        table.numbers[rows].tolist(),
        table.score(rows, decided).tolist(),
        table.chance(rows, decided).tolist(),
        [names[c] for c in decided],
        strict=True,
    )
    return {
        "columns": ["row", "score", "probability", "decision", *columns],
        "near": table.near(rows),
        "labels": list(names),
        "rows": [[*own, *row] for own, row in zip(told, values, strict=False)],
    }


def _rows(table: JudgedTable, rows: Labels, ranked: list[str]) -> dict[str, Any]:
    """Rows to list, with scores, classes and values.

    Row numbers count from 1, below the header. The most important columns come first, then
    others, such as ids, while there is room.
    """
    frame, judged, names = table.frame, table.judged, table.names
    others = [str(name) for name in frame.columns if name != table.target]
    ids = [
        column.name
        for column in table.model.schema.columns
        if column.kind == "dropped" and column.name in others
    ]
    matter = [name for name in ranked if name in others]
    matter = matter[: MAX_COLUMNS - min(len(ids), 2)]
    columns = list(dict.fromkeys([*matter, *ids, *others]))[:MAX_COLUMNS]
    shown = rows[:MAX_ROWS]
    decided = judged.decided[shown]
    taken = decided != table.fitted.labels.usual
    told: dict[str, Any] = {
        "row": table.numbers[shown].tolist(),
        "score": table.score(shown, decided).tolist(),
        "probability": table.chance(shown, decided).tolist(),
        "decided": [names[c] for c in decided],
        "taken": taken.tolist(),
    }
    if judged.labels is not None:
        truth = judged.labels[shown]
        told["truth"] = [names[c] for c in truth]
        # None for the negative class of two, which gets no votes.
        known = np.isin(truth, table.fitted.labels.reported).tolist()
        scores = zip(table.score(shown, truth).tolist(), known, strict=True)
        told["score_of_truth"] = [score if voted else None for score, voted in scores]
    told["values"] = [[as_text(frame[name].iloc[i]) for name in columns] for i in shown]
    each = zip(*told.values(), strict=True)
    return {
        "total": len(rows),
        "taken": int((judged.decided[rows] != table.fitted.labels.usual).sum()),
        "columns": columns,
        "left_out": max(0, len(others) - len(columns)),
        "rows": [dict(zip(told, row, strict=True)) for row in each],
    }


def _promise(table: JudgedTable, labels: Labels) -> dict[str, Any]:
    """The certificate for new rows, or why there is none.

    :func:`damvi.certificate.certify` finds out which rows are training rows.
    """
    if table.judged.of_fit.all():
        return {"why": NO_PROMISE}
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            truth = table.fitted.labels.by_target[labels]
            found = certify(table.model.classifier, table.X, truth)
    except ValueError as error:
        return {"why": f"{NO_PROMISE} ({error}.)"}
    return {"why": None, "notes": [str(each.message) for each in caught], **found.as_dict()}
