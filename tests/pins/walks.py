"""Small fits from end to end, whose results must not change by accident.

Each walk takes one road through the library by its public names alone, on generated rows,
and returns what it found as arrays by name. ``tests/pins/test_pins.py`` holds them against
``expected.json``; ``benchmarks/pins.py`` compares two source trees bit by bit.

:func:`bagged` and :func:`pooled` are the one place that knows how the estimators of either
tree are called.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import damvi
from damvi import DAMVIClassifier, FastTreeClassifier, ParquetTable, Unlabeled, VoteStream
from damvi.voters import FastForestClassifier, strong_pool
from damvi.voters.portfolio import BOOSTERS

Found = dict[str, Any]


@dataclass(frozen=True)
class Walk:
    """A road through the library, and how closely its results can be held elsewhere."""

    run: Callable[[], Found]
    kept: str
    """What of it is stored: all "numbers"; "decisions" alone, where other CPUs and library
    releases change the numbers; or "nothing", and only two source trees are compared."""


WALKS: dict[str, Walk] = {}


def walk(*, kept: str = "numbers") -> Callable[[Callable[[], Found]], Callable[[], Found]]:
    """Add a function to ``WALKS`` under its own name."""

    def add(run: Callable[[], Found]) -> Callable[[], Found]:
        WALKS[run.__name__] = Walk(run, kept)
        return run

    return add


# How the estimators are called, before the pool became an estimator of its own and after.


def bagged(
    estimator: Any = None, *, unlabeled_weight: float | None = None, **settings: Any
) -> Any:
    """The paper's method: one voter drawn many times."""
    settings = {"n_estimators": 25, "random_state": 0} | settings
    if unlabeled_weight is None:
        return DAMVIClassifier(estimator, **settings)
    if "unlabeled_weight" in DAMVIClassifier().get_params():
        return DAMVIClassifier(estimator, unlabeled_weight=unlabeled_weight, **settings)
    rest: Any = {"unlabeled": "disagreement", "eta": unlabeled_weight}
    return DAMVIClassifier(estimator, **rest, **settings)


def without_labels(model: Any, X: Any, positive_rate: float | None) -> Any:
    """A table for ``X_unlabeled`` with a class rate of its own."""
    if "positive_rate" in model.get_params():
        model.set_params(positive_rate=positive_rate)
        return Unlabeled(X)
    return Unlabeled(X, positive_rate=positive_rate)


def pooled(estimators: Any, **settings: Any) -> Any:
    """A pool of different models, each trained once."""
    settings = {"random_state": 0} | settings
    voting_classifier = getattr(damvi, "DAMVIVotingClassifier", None)
    if voting_classifier is not None:
        return voting_classifier(estimators, **settings)
    if settings.get("cv") == "prefit":
        settings = {**settings, "cv": None, "votes": "prefit"}
    return DAMVIClassifier(estimators, **settings)


# Rows. Whole thousandths, so that no CPU's logarithm changes a value.


def rows(n: int, seed: int, n_classes: int = 2) -> tuple[Any, Any]:
    """Eight features, and classes of falling size: 85 % and 15 %, or 70, 20 and 10 %."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 8)).round(3)
    noise = rng.normal(size=n).round(3)
    score = X[:, 0] + 0.7 * X[:, 1] - 0.5 * X[:, 2] * X[:, 3] + 0.6 * noise
    if n_classes == 2:
        return X, (score > 1.6).astype(int)
    return X, np.array(["often", "seldom", "rare"])[np.searchsorted([0.9, 2.1], score)]


def frame(n: int, seed: int, n_classes: int = 2) -> Any:
    """Numbers, whole numbers, flags, gaps and categories; a label, and a weight."""
    X, y = rows(n, seed, n_classes)
    rng = np.random.RandomState(seed + 1000)
    table = pd.DataFrame(X[:, :4], columns=list("abcd"))
    table["few"] = rng.randint(0, 6, n)
    table["flag"] = rng.random_sample(n) < 0.3
    table.loc[rng.random_sample(n) < 0.1, "b"] = np.nan
    shops = rng.choice(np.array(["x", "north", "älter"], object), n)
    shops[rng.random_sample(n) < 0.05] = None
    table["shop"] = pd.Categorical(shops, categories=["x", "north", "älter", "unused"])
    table["label"] = y
    turn = (shops == "x") & (rng.random_sample(n) < 0.3)
    table.loc[turn, "label"] = y.max() if n_classes == 2 else "rare"
    table["weight"] = rng.randint(0, 5, n) / 4
    return table


def parted(table: Any) -> tuple[Any, Any, Any]:
    """Features, labels and weights of a frame."""
    X = table.drop(columns=["label", "weight"])
    return X, table["label"].to_numpy(), table["weight"].to_numpy()


# What is looked at.


def seen(model: Any, X: Any, name: str = "", *, trees: bool = False) -> Found:
    """All that a fitted model tells of itself and of the new rows ``X``."""
    found = {
        "weights": model.weights_,
        "threshold": model.threshold_,
        "c_bound": model.c_bound_,
        "gibbs_risk": model.gibbs_risk_,
        "disagreement": model.disagreement_,
        "votes": model.cast_votes(X),
        "vote": model.vote(X),
        "decision_function": model.decision_function(X),
        "probabilities": model.predict_proba(X),
        "decisions": numbers_of(model.predict(X), model.classes_),
        "unseen": model.oob_decision_function_,
    }
    if trees:
        found |= shape(model.estimators_, X)
        found["importances"] = model.feature_importances_
    return named(found, name)


def shape(trees: list[Any], X: Any) -> Found:
    """The built-in trees, whole: nodes where they split numbers, and leaves on ``X``."""
    with warnings.catch_warnings():  # voters are trained without the names of columns
        warnings.filterwarnings("ignore", "X has feature names", UserWarning)
        shares = np.stack([tree.predict_proba(X) for tree in trees])
    found: Found = {
        "leaves": np.array([tree.get_n_leaves() for tree in trees]),
        "depth": np.array([tree.get_depth() for tree in trees]),
        "leaf_shares": shares,
    }
    if any(str(dtype) == "category" for dtype in getattr(X, "dtypes", ())):
        return found  # scikit-learn's trees know no categories
    nodes = [tree.to_sklearn().tree_ for tree in trees]
    for part in ("children_left", "feature", "n_node_samples", "missing_go_to_left"):
        found[f"tree_{part}"] = np.concatenate([getattr(n, part) for n in nodes])
    for part in ("threshold", "weighted_n_node_samples"):
        found[f"tree_{part}"] = np.concatenate([getattr(n, part) for n in nodes])
    return found


def numbers_of(labels: Any, classes: Any) -> Any:
    """Labels as their places in ``classes``."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    return np.array([places[label] for label in np.asarray(labels).tolist()], np.int8)


def named(found: Found, name: str) -> Found:
    return {f"{name}/{key}" if name else key: value for key, value in found.items()}


# Trees.


@walk()
def trees() -> Found:
    """The defaults, and the trees alone."""
    X, y = rows(400, 0)
    new, _ = rows(150, 1)
    model = bagged().fit(X, y)
    found = seen(model, new, trees=True)
    with tempfile.TemporaryDirectory() as folder:
        damvi.save(model, Path(folder, "model.damvi"))
        found["loaded"] = damvi.load(Path(folder, "model.damvi")).vote(new)
    tree = FastTreeClassifier(max_depth=5, min_samples_leaf=3, max_features="sqrt")
    found |= named(shape([tree.set_params(random_state=1).fit(X, y)], new), "tree")
    for balanced in (False, True):
        forest = FastForestClassifier(10, balanced=balanced, random_state=0).fit(X, y)
        found[f"forest/{balanced}"] = forest.predict_proba(new)
        found[f"forest_importances/{balanced}"] = forest.feature_importances_
    return found


@walk()
def trees_out_of_bag() -> Found:
    """Votes on rows that a voter has not drawn, by samples of several kinds."""
    X, y = rows(400, 2)
    new, _ = rows(150, 3)
    y = np.array(["no", "yes"])[y]
    found: Found = {}
    for name, settings in {
        "f1": {"threshold": "f1", "n_jobs": 2},
        "poisson": {"bootstrap": "poisson", "max_samples": 0.5},
        "stratified": {"stratified": True, "max_samples": 120, "reweight": 0.5},
        "all_once": {"bootstrap": False, "shrinkage": 0.1, "reweight": False},
    }.items():
        model = bagged(votes="oob", **settings).fit(X, y)
        found |= seen(model, new, name, trees=name != "f1")
    return found


@walk()
def trees_mixed_columns() -> Found:
    """Missing values, categories and weights in a dataframe; weights of 0 among them."""
    X, y, weight = parted(frame(400, 4))
    new, _, _ = parted(frame(150, 5))
    found = seen(bagged().fit(X, y, sample_weight=weight), new, trees=True)
    model = bagged(
        FastTreeClassifier(max_features=0.5, categorical_features=["few"]),
        votes="oob",
        bootstrap=False,
        threshold={"precision": 0.6},
    )
    return found | seen(model.fit(X, y, sample_weight=weight), new, "few", trees=True)


@walk()
def trees_sparse() -> Found:
    """A sparse table, most of it 0."""
    rng = np.random.RandomState(6)
    (X, y), (new, _) = rows(400, 6), rows(150, 7)
    X[:, 4:], new[:, 4:] = 0, 0
    X[:, 3] *= rng.random_sample(len(X)) < 0.3
    found: Found = {}
    for name, make in {"csr": sparse.csr_matrix, "csc": sparse.csc_array}.items():
        model = bagged(votes="oob" if name == "csc" else "train")
        found |= seen(model.fit(make(X), y), sparse.csr_matrix(new), name, trees=True)
    return found


@walk()
def trees_many_rows() -> Found:
    """More rows than fit in a block, and trees by each way to look for a split."""
    found: Found = {}
    for n_classes in (2, 3):
        X, y = rows(20_000, 50, n_classes)
        X[:, 5] = X[:, 5].round()  # a column of few values
        new, _ = rows(150, 51)
        for name, tree, settings in (
            ("all", {}, {"votes": "oob"}),
            ("one", {"max_features": 1, "min_samples_leaf": 20}, {"n_jobs": 2}),
            ("two", {"max_features": 2}, {"max_samples": 1.0, "threshold": "vote"}),
            ("shallow", {"max_depth": 3}, {"bootstrap": "poisson", "stratified": True}),
        ):
            model = bagged(FastTreeClassifier(**tree), n_estimators=6, **settings)
            found |= seen(model.fit(X, y), new, f"{n_classes}/{name}", trees=True)
    rng = np.random.RandomState(52)
    X = rng.normal(size=(2000, 6)).round(3)
    y = np.digitize(X[:, 0] + X[:, 1] + rng.normal(size=2000).round(3), np.arange(-3, 4))
    return found | seen(bagged(n_estimators=6).fit(X, y), X[:150], "eight", trees=True)


@walk()
def majority_positive() -> Found:
    """The common class is the one to find."""
    X, y = rows(400, 8)
    new, _ = rows(150, 9)
    found: Found = {}
    for name, settings in {
        "vote": {},
        "recall": {"threshold": {"recall": 0.9}, "votes": "oob"},
        "cost": {"threshold": {"cost": (1, 3)}, "votes": "oob"},
    }.items():
        found |= seen(bagged(pos_label=0, **settings).fit(X, y), new, name, trees=True)
    return found


@walk()
def ties() -> Found:
    """Classes of the same size, and votes that tie, whichever label is the majority."""
    rng = np.random.RandomState(10)
    X = rng.randint(0, 3, size=(240, 4)).astype(float)
    new = rng.randint(0, 3, size=(150, 4)).astype(float)
    noise = rng.random_sample(240)
    y = np.argsort(np.argsort(X[:, 0] + X[:, 1] - X[:, 2] + noise)) >= 120
    stump = FastTreeClassifier(max_depth=1)
    found: Found = {}
    for name, labels in {
        "equal": y.astype(int),
        "last_more": np.where(noise > 0.9, 1, y),
        "first_more": np.where(noise > 0.9, 0, y),
        "three": np.where(X[:, 3] + noise > 2.4, 2, y),
    }.items():
        for solver in ("uniform", "exact"):
            # Some stumps are the same; shrunk, their weights are too.
            settings = {"n_estimators": 6, "solver": solver, "shrinkage": 0.1}
            model = bagged(stump, **settings).fit(X, labels)
            found |= seen(model, new, f"{name}/{solver}", trees=True)
    return found


@walk()
def weighted_again() -> Found:
    """The same votes weighted by other settings; fewer voters; more voters."""
    X, y = rows(400, 11)
    new, _ = rows(150, 12)
    model = bagged(votes="oob").fit(X, y)
    found: Found = {}
    for name, settings in {
        "half": {"reweight": 0.5, "shrinkage": 0.05},
        "plain": {"reweight": False, "threshold": "f1"},
        "recall_first": {"threshold": {"fbeta": 2}, "shrinkage": 0.0},
        "number": {"threshold": 0.125},
        "joint": {"threshold": "vote", "fit_intercept": True, "reweight": True},
        "even": {"solver": "uniform", "fit_intercept": False},
    }.items():
        model = model.reweigh(**settings)
        found |= seen(model, new, name)
    model = model.reweigh(solver="exact", threshold="f1")
    pruned = model.prune(8)
    found |= seen(pruned, new, "pruned", trees=True)
    for figure in ("sizes", "c_bound", "average_precision", "f1"):
        found[f"pruned/{figure}_path"] = np.array(getattr(pruned.pruning_, figure))
    warm = bagged(n_estimators=10, warm_start=True, bootstrap="poisson").fit(X, y)
    return found | seen(warm.set_params(n_estimators=20).fit(X, y), new, "warm", trees=True)


@walk(kept="decisions")
def local_solver() -> Found:
    """The paper's solver, which other releases of SciPy may stop a little elsewhere."""
    X, y = rows(400, 13)
    new, _ = rows(150, 14)
    model = bagged(n_estimators=12, solver="slsqp", votes="oob", threshold="f1")
    return seen(model.fit(X, y), new)


@walk()
def unlabelled_rows() -> Found:
    """The disagreement on rows without labels, at their class rate and at another."""
    X, y = rows(300, 15)
    fresh, _ = rows(500, 16)
    new, _ = rows(150, 17)
    found: Found = {}
    for name, rate in {"same_rate": None, "other_rate": 0.3}.items():
        model = bagged(unlabeled_weight=0.5, votes="oob")
        more = without_labels(model, fresh, rate)
        found |= seen(model.fit(X, y, X_unlabeled=more), new, name)
    return found


@walk(kept="decisions")
def other_estimators() -> Found:
    """Voters of scikit-learn, drawn many times."""
    X, y = rows(300, 18)
    new, _ = rows(150, 19)
    weight = np.random.RandomState(20).randint(1, 4, len(X)) / 2
    found = seen(bagged(DecisionTreeClassifier(max_depth=4)).fit(X, y), new, "tree")
    linear = LogisticRegression(C=0.1)
    model = bagged(linear, n_estimators=10, votes="oob", threshold="f1")
    found |= seen(model.fit(X, y, sample_weight=weight), new, "linear")
    X, y = rows(300, 18, n_classes=3)
    return found | seen(bagged(DecisionTreeClassifier()).fit(X, y), new, "classes")


# Pools.


def models() -> list[tuple[str, Any]]:
    return [
        ("bayes", GaussianNB()),
        ("linear", make_pipeline(StandardScaler(), LogisticRegression(C=0.5))),
        ("tree", DecisionTreeClassifier(max_depth=4, random_state=0)),
        ("forest", FastForestClassifier(20, random_state=0)),
    ]


@walk(kept="decisions")
def pool() -> Found:
    """A list of four models, weighed in every manner."""
    X, y = rows(400, 21)
    new, _ = rows(300, 22)
    rng = np.random.RandomState(23)
    weight, groups = rng.randint(1, 5, len(X)) / 4, rng.randint(0, 40, len(X))
    found = seen(pooled(models()).fit(X, y), new, "defaults")
    for name, settings in {
        "hard": {"voting": "hard", "cv": 3},
        "platt": {"calibration": "platt", "balance": 1.0, "threshold": {"recall": 0.8}},
        "isotonic": {"calibration": "isotonic", "balance": 0.0, "shrinkage": 0.05},
        "raw": {"calibration": None, "reweight": True, "threshold": "vote"},
        "even": {"solver": "uniform", "pos_label": 0, "calibration": "platt"},
    }.items():
        settings = {"cv": 3} | settings
        found |= seen(pooled(models(), **settings).fit(X, y), new, name)
    model = pooled(models(), cv=GroupKFold(4)).fit(X, y, weight, groups=groups)
    found |= seen(model, new, "groups")
    found |= seen(model.reweigh(reweight=0.5, threshold="vote"), new, "again")
    fitted = [(name, one.fit(X[:200], y[:200])) for name, one in models()]
    for voting in ("soft", "hard"):
        model = pooled(fitted, cv="prefit", voting=voting).fit(X[200:], y[200:])
        found |= seen(model, new, f"fitted_{voting}")
    return found


@walk(kept="decisions")
def pool_of_classes() -> Found:
    """The same with three classes."""
    X, y = rows(400, 24, n_classes=3)
    new, _ = rows(300, 25)
    found = seen(pooled(models()).fit(X, y), new, "defaults")
    for name, settings in {
        "hard": {"voting": "hard"},
        "platt": {"calibration": "platt", "balance": 1.0, "threshold": [1, 1.5, 2]},
        "isotonic": {"calibration": "isotonic", "balance": 0.0, "threshold": "vote"},
        "raw": {"calibration": None, "reweight": True, "shrinkage": 0.05},
    }.items():
        found |= seen(pooled(models(), cv=3, **settings).fit(X, y), new, name)
    fitted = [(name, one.fit(X[:200], y[:200])) for name, one in models()]
    model = pooled(fitted, cv="prefit").fit(X[200:], y[200:])
    return found | seen(model, new, "fitted")


@walk(kept="decisions")
def strong() -> Found:
    """The strong pool, without the boosters that not everybody has installed.

    Nor networks: the last bits of their gradients, which differ between CPUs, would show.
    """
    table, new = frame(300, 26), frame(200, 27)
    X, y, _ = parted(table)
    new, _, _ = parted(new)
    others = {"hist_boosting", "networks", *BOOSTERS}
    pool = strong_pool(0, extended=True)
    members = [(name, one) for name, one in pool if name not in others]
    found = seen(pooled(members, cv=3).fit(X, y), new)
    found["members"] = np.array([name for name, _ in members])
    return found


# Three classes.


@walk()
def classes() -> Found:
    """Trees of three classes, on training rows and on rows out of bag."""
    X, y = rows(400, 28, n_classes=3)
    new, _ = rows(150, 29)
    found = seen(bagged().fit(X, y), new, "train", trees=True)
    for name, settings in {
        "macro_f1": {"votes": "oob", "threshold": "macro_f1", "n_jobs": 2},
        "factors": {"votes": "oob", "threshold": [1, 2, 0.5], "stratified": True},
        "half": {"reweight": 0.5, "shrinkage": 0.05, "bootstrap": "poisson"},
    }.items():
        found |= seen(bagged(**settings).fit(X, y), new, name)
    model = bagged(votes="oob").fit(X, y).reweigh(threshold="macro_f1", reweight=False)
    found |= seen(model, new, "again")
    found |= seen(model.prune(6), new, "pruned")
    forest = FastForestClassifier(10, balanced=True, random_state=0).fit(X, y)
    found["forest"] = forest.predict_proba(new)
    return found


@walk()
def classes_mixed_columns() -> Found:
    """Missing values, categories and weights; as a sparse table too."""
    X, y, weight = parted(frame(400, 30, n_classes=3))
    new, _, _ = parted(frame(150, 31, n_classes=3))
    model = bagged(votes="oob", threshold="macro_f1").fit(X, y, sample_weight=weight)
    found = seen(model, new, "frame", trees=True)
    X, y = rows(400, 32, n_classes=3)
    thin = sparse.csr_matrix(np.where(X > 0, X, 0))
    model = bagged(FastTreeClassifier(max_features="sqrt", min_samples_leaf=2))
    model.fit(thin, y, sample_weight=weight)
    return found | seen(model, thin[:150], "sparse", trees=True)


# Tables beyond memory, on clusters, and rows that come later.


@contextmanager
def parquet(table: Any) -> Iterator[Path]:
    """The table as a folder of two files, of several row groups each."""
    with tempfile.TemporaryDirectory() as folder:
        half = len(table) // 2
        table[:half].to_parquet(Path(folder, "a.parquet"), row_group_size=90)
        table[half:].to_parquet(Path(folder, "b.parquet"), row_group_size=150)
        yield Path(folder)


@walk()
def on_disk() -> Found:
    """Parquet, block by block."""
    found: Found = {}
    for n_classes in (2, 3):
        new, _, _ = parted(frame(150, 34, n_classes))
        with parquet(frame(500, 33, n_classes)) as folder:
            settings = {"votes": "oob"} if n_classes == 3 else {"threshold": "f1"}
            model = bagged(n_estimators=15, bootstrap="poisson", **settings)
            model.fit(ParquetTable(folder), "label", sample_weight="weight")
            found |= seen(model, new, str(n_classes), trees=True)
            aim = {"threshold": "vote", "reweight": 0.5}
            found |= seen(model.reweigh(**aim), new, f"{n_classes}/again")
            columns = ParquetTable(folder, columns=["a", "shop"])
            plain = bagged(n_estimators=5, bootstrap="poisson").fit(columns, "label")
            found[f"{n_classes}/two_columns"] = plain.vote(new[["a", "shop"]])
            del model, plain  # and with them their codes on disk
    return found


@walk()
def cluster() -> Found:
    """Dask, on a cluster inside this process."""
    import dask
    import dask.array as da
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from damvi.distributed import fit, predict, vote

    options: Any = {"processes": False, "n_workers": 1, "threads_per_worker": 1}
    options |= {"dashboard_address": None, "memory_limit": 0}
    found: Found = {}
    with (
        dask.config.set({"dataframe.convert-string": False}),
        LocalCluster(**options) as workers,
        Client(workers, set_as_default=False) as client,
    ):
        table = frame(400, 35)
        new, _, _ = parted(frame(150, 36))
        model = bagged(n_estimators=15, bootstrap="poisson", votes="oob", threshold="f1")
        parts = dd.from_pandas(table, npartitions=3)
        fit(model, parts, "label", sample_weight="weight", client=client)
        found |= seen(model, new, "frame", trees=True)
        lazily = vote(model, dd.from_pandas(new, npartitions=2))
        found["frame/lazily"] = np.asarray(client.compute(lazily).result())

        X, y = rows(400, 37, n_classes=3)
        new, _ = rows(150, 38)
        model = bagged(n_estimators=15, bootstrap="poisson")
        fit(model, da.from_array(X, chunks=(150, 8)), da.from_array(y, 150), client=client)
        found |= seen(model, new, "array", trees=True)
        lazily = predict(model, da.from_array(new, chunks=(100, 8)))
        decided = np.asarray(client.compute(lazily).result())
        found["array/lazily"] = numbers_of(decided, model.classes_)
    return found


@walk()
def stream() -> Found:
    """The weights follow rows that arrive in batches."""
    (X, y), (late, labels), (new, _) = rows(400, 39), rows(600, 40), rows(150, 41)
    weight = np.random.RandomState(42).randint(0, 3, len(late)).astype(float)
    found: Found = {}
    for name, settings in {
        "remembers": {"prior_rows": 0},
        "forgets": {"half_life": 300.0},
        "starts_at_100": {"prior_rows": 100, "min_rows": 20},
    }.items():
        own = {"threshold": "vote", "fit_intercept": True}
        how = own if name == "forgets" else {"threshold": "f1"}
        model = bagged(votes="oob", **how).fit(X, y)
        arriving = VoteStream(model, **settings)
        for start in range(0, 600, 200):
            part = slice(start, start + 200)
            drift = arriving.partial_fit(late[part], labels[part], weight[part])
            found[f"{name}/{start}/weights"] = arriving.weights_
            found[f"{name}/{start}/before"] = drift.vote
            found[f"{name}/{start}/gibbs_risk"] = np.array(drift.gibbs_risk)
            found[f"{name}/{start}/positive_rate"] = np.array(drift.positive_rate)
        found[f"{name}/rows"] = arriving.rows_
        found[f"{name}/threshold"] = arriving.threshold_
        found[f"{name}/moments"] = arriving.moments_.M
        found[f"{name}/vote"] = arriving.vote(new)
        found[f"{name}/decisions"] = numbers_of(arriving.predict(new), model.classes_)
    return found


def run_command(*words: str) -> str:
    """What a command says, on the standard output."""
    from click.testing import CliRunner

    from damvi.cli import main

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ran = CliRunner().invoke(main, [*words, "--debug"])
    if ran.exit_code != 0:
        raise RuntimeError(f"damvi {words[0]}: {ran.output}") from ran.exception
    return ran.stdout


@contextmanager
def fitted_file(n_classes: int) -> Iterator[tuple[Path, str]]:
    """A folder with rows.csv, new.csv and model.damvi, and what the fit said as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        for name, n, seed in (("rows.csv", 300, 43), ("new.csv", 150, 44)):
            table = frame(n, seed, n_classes).drop(columns="weight")
            if n_classes == 2:
                table["label"] = np.where(table["label"] == 1, "bad", "fine")
            table.to_csv(here / name, index=False)
        words = ["fit", str(here / "rows.csv"), "--target", "label", "--pool", "trees"]
        said = run_command(*words, "--jobs", "1", "-o", str(here / "model.damvi"), "--json")
        yield here, said


@walk()
def commands() -> Found:
    """From a CSV file to a model file to predictions, by the command line."""
    found: Found = {}
    for n_classes in (2, 3):
        with fitted_file(n_classes) as (here, _):
            model, new, out = (str(here / f) for f in ("model.damvi", "new.csv", "out.csv"))
            run_command("predict", model, new, "--jobs", "1", "-o", out, "--quiet")
            for name, column in pd.read_csv(out).items():
                values = column.to_numpy()
                if values.dtype.kind not in "iuf":
                    values = np.unique(values.astype(str), return_inverse=True)[1]
                found[f"{n_classes}/{name}"] = values
    return found


@walk(kept="nothing")
def figures() -> Found:
    """What fit, evaluate, explain and report say of a model, and its certificate."""
    from damvi.certificate import certify

    found: Found = {}
    for n_classes in (2, 3):
        with fitted_file(n_classes) as (here, said):
            found |= numbers_in(said, f"{n_classes}/fit")
            model, new = str(here / "model.damvi"), str(here / "new.csv")
            page = str(here / "report.html")
            for words in (
                ("evaluate", model, new),
                ("explain", model, new),
                ("report", model, new, "-o", page),
            ):
                said = run_command(*words, "--json")
                found |= numbers_in(said, f"{n_classes}/{words[0]}")
        X, y = rows(300, 53, n_classes)
        new_rows, labels = rows(300, 54, n_classes)
        promise = certify(bagged(votes="oob").fit(X, y), new_rows, labels)
        said = json.dumps(promise.as_dict(), default=str)
        found |= numbers_in(said, f"{n_classes}/certificate")
    return found


def numbers_in(said: str, name: str) -> Found:
    """All numbers in a JSON text but measured times, by where they stand."""
    found: Found = {}

    def look(value: Any, place: str) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                if key != "seconds":
                    look(inner, f"{place}.{key}")
        elif isinstance(value, list):
            for number, inner in enumerate(value):
                look(inner, f"{place}[{number}]")
        elif isinstance(value, (bool, int, float)):
            found[place] = value

    look(json.loads(said), name)
    return found
