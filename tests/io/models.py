"""Data of two and of four classes, models of them, and what it is to be the same."""

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from damvi import DAMVIClassifier
from damvi.io import TrainingRows
from damvi.model import Model
from damvi.tables import Column, Schema, Target, TargetOfMany
from damvi.voters import strong_pool

X, Y = make_classification(500, 6, weights=[0.85], random_state=0)
X4, Y4 = make_classification(
    400,
    6,
    n_informative=5,
    n_redundant=0,
    n_classes=4,
    weights=[0.55, 0.25, 0.15],
    random_state=0,
)
DATA = {2: (X, Y), 4: (X4, Y4)}
NAMES = np.array(["fine", "late", "lost", "ölig <b>"])
POOL = [("bayes", GaussianNB()), ("linear", LogisticRegression())]


def with_holes(X):
    return np.where(np.random.RandomState(0).rand(*X.shape) < 0.1, np.nan, X)


def frame(X=X):
    table = pd.DataFrame(X, columns=[f"x {i}" for i in range(X.shape[1])])
    names = np.array(["a", "b", "ç <i>", "d"])[np.digitize(X[:, 0], [-1, 0, 1])]
    table["names"] = pd.Categorical(names).set_categories(["d", "ç <i>", "a", "b", "e"])
    table["sizes"] = pd.Categorical(np.digitize(X[:, 1], [0, 1]))
    table.loc[::7, "names"] = np.nan
    return table


def small_strong_pool():
    """One of each of the strong pool, made small."""
    smaller = {
        "iterations": 5,
        "extratreesclassifier__n_estimators": 3,
        "histgradientboostingclassifier__max_iter": 5,
        "lgbmclassifier__n_estimators": 5,
        "n_estimators": 3,
        "networksclassifier__n_estimators": 2,
        "xgbclassifier__n_estimators": 5,
    }
    pool = []
    for name, voter in strong_pool(0, extended=True):
        known = voter.get_params()
        small = {key: value for key, value in smaller.items() if key in known}
        pool.append((name, voter.set_params(**small)))
    return pool


def whole_model(n_classes=2):
    X, labels = DATA[n_classes]
    rng = np.random.RandomState(0)
    table, n = frame(X), len(labels)
    target, kind = Target("is fraud", "no", "yes"), bool
    vote = rng.rand(n)
    if n_classes > 2:
        target, kind = TargetOfMany("state", classes=tuple(NAMES.tolist())), np.uint8
        vote = rng.dirichlet(np.ones(4), size=n)
    vote[rng.rand(n) < 0.1] = np.nan
    labels = labels.astype(kind)
    blocks = (np.arange(n) % 5).astype(np.int16)
    schema = Schema(
        (
            *(Column(name, "number") for name in table.columns[:6]),
            Column("names", "category", ("d", "ç <i>", "a", "b", "e")),
            Column("sizes", "category", ("0", "1", "2")),
            Column("id", "dropped", reason="all values differ"),
        )
    )
    return Model(
        DAMVIClassifier(n_estimators=10, random_state=0).fit(table, labels),
        schema,
        target,
        TrainingRows(
            rng.randint(0, 2**62, n).astype(np.uint64), vote, labels, blocks=blocks
        ),
        scores={"f1": {"mean": 0.5, "folds": [0.4, float("nan")]}, "n": 3, "note": None},
        made={"command": "damvi fit data.csv", "seed": 0, "data": "sha256:12"},
    )


def same(ours, theirs):
    """Equal in type and in every bit."""
    assert type(ours) is type(theirs)
    if isinstance(ours, np.ndarray):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        assert ours.dtype.kind == "O" or ours.tobytes() == theirs.tobytes()
        assert ours.dtype.kind != "O" or ours.tolist() == theirs.tolist()
    elif isinstance(ours, np.random.RandomState):
        assert repr(ours.get_state()) == repr(theirs.get_state())
    else:
        assert repr(ours) == repr(theirs)
