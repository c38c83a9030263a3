"""Small tables and models of them, as ``damvi fit`` makes them but in a blink."""

from dataclasses import replace

import numpy as np
import pandas as pd

from damvi import DAMVIClassifier, DAMVIVotingClassifier
from damvi.decision import crossfit_probability, crossfit_thresholds
from damvi.evaluation import voters_of_fit
from damvi.hashing import row_hashes
from damvi.io import TrainingRows
from damvi.model import Model
from damvi.tables import Schema, Target, TargetOfMany

HOSTILE = '</script><script>alert("x")</script><img src=x onerror=alert(1)>'


def cheapest(cuts, miss):
    """The cut of least cost when a false alarm costs 1; of equals, the fewest flagged.

    The page's script does the same, operation by operation, so that both agree to the last
    bit.
    """
    return int(np.argmin(miss * (cuts.positives - cuts.found) + cuts.alarms))


def best_with_recall(cuts, floor):
    """The cut of highest precision that finds ``floor`` of the positives.

    Of equals, the one that finds more. The script does the same.
    """
    enough = cuts.found >= np.ceil(floor * cuts.positives - 1e-9)
    precision = cuts.found / np.maximum(cuts.found + cuts.alarms, 1)
    ranked = np.where(enough, precision, -1.0)
    return int(len(ranked) - 1 - np.argmax(ranked[::-1]))


def make_table(n=600, seed=0, amount="amount"):
    """Two numbers, a category, a date and an id; about 15 % are "yes"."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n)
    kind = rng.choice(["a", "b", "<b>bold</b>"], size=n)
    frame = pd.DataFrame(
        {
            "id": [f"{HOSTILE} {seed} {i}" for i in range(n)],
            amount: size + rng.normal(size=n) * 0.3,
            "noise": rng.normal(size=n),
            "kind": kind,
            "day": pd.date_range("2024-01-01", periods=n, freq="h").strftime(
                "%Y-%m-%d %H:%M"
            ),
        }
    )
    bad = size + (kind == "a") * 0.6 + 0.5 * rng.normal(size=n) > 1.4
    frame["fraud"] = np.where(bad, "yes", "no")
    return frame


def fit_classifier(X, y, pool, threshold, **options):
    """Trees, or a pool; calibrated either way."""
    options = {"threshold": threshold, "random_state": 0, **options}
    if pool is None:
        classifier = DAMVIClassifier(n_estimators=25, stratified=True, **options)
    else:
        classifier = DAMVIVotingClassifier(pool, **options)
    classifier.fit(X, y)
    classifier.decision_ = replace(classifier.decision_, calibrates=True)
    return classifier


def learned(classifier, labels):
    """What the vote on each row is cut at and stands for, by rows of other folds."""
    decision = classifier.decision_
    rows = decision.out_of_sample_vote, labels.astype(int)
    folds, order = classifier.votes_.folds, classifier.labels_.target_order
    cuts = crossfit_thresholds(*rows, decision.objective, folds, order=order)
    return cuts, crossfit_probability(*rows, folds)


def make_model(frame, pool=None, threshold="f1", with_voters=True):
    schema = Schema.infer(frame, "fraud", drop=["id"])
    X, positive = schema.encode(frame), (frame["fraud"] == "yes").to_numpy()
    classifier = fit_classifier(X, positive, pool, threshold, pos_label=True)
    vote = classifier.decision_.out_of_sample_vote
    return Model(
        classifier,
        schema,
        Target("fraud", "no", "yes"),
        TrainingRows(
            row_hashes(X, positive), vote, positive, *learned(classifier, positive)
        ),
        {"voters": voters_of_fit(classifier)} if with_voters else {},
        {"command": "damvi fit toy.csv --target fraud", "seed": 0},
    )


CLASSES = (HOSTILE, "dent", "fine", "scratch")
"""In the order of the model; "fine" is most of it."""


def make_class_table(n=700, seed=0, width="width"):
    """Two numbers, a category and an id; the hostile class is about 4 %."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(4, p=[0.04, 0.08, 0.7, 0.18], size=n)
    centre = np.array([[2.2, 0], [0, 2.2], [0, 0], [-1.6, -0.8]])[kind]
    values = centre + rng.normal(size=(n, 2)) * 0.9
    return pd.DataFrame(
        {
            "id": [f"{HOSTILE} {seed} {i}" for i in range(n)],
            width: values[:, 0],
            "depth": values[:, 1],
            "line": rng.choice(["a", "b", "<b>bold</b>"], size=n),
            "fault": np.array(CLASSES)[kind],
        }
    )


def make_class_model(frame, pool=None, threshold="macro_f1", with_voters=True):
    schema = Schema.infer(frame, "fault", drop=["id"])
    X = schema.encode(frame)
    labels = frame["fault"].map({name: c for c, name in enumerate(CLASSES)}).to_numpy()
    classifier = fit_classifier(X, labels, pool, threshold)
    vote = classifier.decision_.out_of_sample_vote
    return Model(
        classifier,
        schema,
        TargetOfMany("fault", classes=CLASSES),
        TrainingRows(
            row_hashes(X, labels),
            vote,
            labels.astype(np.uint8),
            *learned(classifier, labels),
        ),
        {"voters": voters_of_fit(classifier)} if with_voters else {},
        {"command": "damvi fit faults.csv --target fault", "seed": 0},
    )
