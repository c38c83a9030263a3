"""All that the page says, as plain values: one entry a section."""

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
"""Rows that the page can write to a file, within as many characters of their values."""
MOST_CHARACTERS = 400_000
MAX_COLUMNS = 12
MOST_PAIRS = 10
MOST_VIEWS = 20
"""Classes that have charts of their own: the rarest, if there are more."""

UNLABELLED = "Without the true classes nobody can say which voter is right."
KNOWN_ROWS = (
    "The voters were trained on rows of this table, and what they say of rows they know "
    "is no measure. Make the report on other rows to see how they differ."
)
NO_PROMISE = (
    "No promise can be made from rows that the model was fitted on. Keep some labelled "
    "rows apart, use them for nothing else, and make the report on these."
)


def summarise(
    model: ModelParts,
    frame: Any,
    target: str | None = None,
    *,
    name: str = "",
    command: str = "",
) -> dict[str, Any]:
    """Everything that the page shows, ready for JSON and for the template.

    Parameters
    ----------
    model : ModelParts
    frame : DataFrame
        As :func:`damvi.tables.read_table` reads it. Training rows are judged by their
        stored out-of-sample votes.
    target : str, optional
        The column of the truth. By default the model's own, if it is there.
    name : str, optional
        What to call the data, such as the file's name.
    command : str, optional
        The command that made the page.
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
    """How many rows there are, and what the columns hold."""
    judged = table.judged
    known, judgeable = int(judged.of_fit.sum()), int(judged.has_vote.sum())
    if not judgeable:
        raise ValueError("no row has an honest vote; give the model other rows")
    return {
        "rows": len(judged),
        "judged": judgeable,
        "of_fit": known,
        "new": len(judged) - known,
        # Of training rows one in so many is judged; of the others nothing is remembered.
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
    """Gaps of a column, and its values in a few words."""
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
        return {"missing": missing, "values": f"{low} to {high}, half below {middle}"}
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
            # How many rows count as one, since they are alike: for the script.
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
    """The promise that the model was made with, in a line; empty without one."""
    if not isinstance(promise, dict) or promise.get("threshold") is None:
        return ""
    told = [f"{promise.get('words')}.", promise.get("price"), promise.get("basis")]
    return f"It decides by a guarantee: {' '.join(map(str, told))}"


def _classes(
    table: JudgedTable,
    counts: NDArray[Any],
    figures: Figures | None,
    effects: dict[str, tuple[float, ...]],
) -> list[dict[str, Any]]:
    """Each class: how frequent it is, and how well it is found."""
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
    """The figures, with their intervals and what chance would give."""
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
    """For each class what its charts show, the rarest first; of two, the positive one.

    ``truth`` and ``chance`` are those of the rows with a vote.
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
    """How plain models did beside this one when it was fitted, if that was measured."""
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
    """The voters' figures on rows that they have not seen, or why there are none."""
    judged, fitted = table.judged, table.fitted
    classifier = table.model.classifier
    found = voters_on(classifier, table.X, labels, judged.decided, ~judged.of_fit)
    if found is None and table.model.scores.get("voters"):
        return dict(table.model.scores["voters"])
    weights = voter_weights(fitted.weights, fitted.names)
    return found or {"known": False, "why": KNOWN_ROWS, **weights}


def _mixed_up(counts: NDArray[Any], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The most frequent mistakes: rows of one class that were taken for another."""
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
    """Wrong decisions, and what was found."""
    judged, some = table.judged, {}
    if judged.labels is not None:
        wrong = np.flatnonzero(judged.has_vote & (judged.decided != judged.labels))
        some = table.mistakes(wrong, judged.labels)
    some[table.found_as] = table.found()
    return {name: _rows(table, rows, ranked) for name, rows in some.items()}


def _download(table: JudgedTable) -> dict[str, Any]:
    """The rows that the page can write to a file: what was found, whole."""
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
    """Rows for the eye: their scores, their classes, their values.

    Row numbers count from 1, as in the file below its header. The columns that matter
    most come first; others, such as ids, follow while there is room.
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
        # None for a class that nobody votes for: the negative one of two.
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
    """What can be promised on rows to come: the certificate, or a reason.

    Whether rows are training rows, or merely look like some of them, is for
    :func:`damvi.certificate.certify` to judge.
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
