"""Random fits: a clean error, or a model whose numbers are what they are said to be.

With ``NUMBA_BOUNDSCHECK=1`` an index out of bounds in a kernel is an error, and a finding.
"""

from __future__ import annotations

import json
import tempfile
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from damvi import (
    DAMVIClassifier,
    DAMVIVotingClassifier,
    FastTreeClassifier,
    load,
    save,
)
from damvi.io import ModelFileError
from damvi.voters import FastForestClassifier

from .mutation import one_of
from .runner import Finding, perturb

Rng = np.random.Generator
SOURCE = str(Path(__import__("damvi").__file__).parent)


@dataclass(frozen=True, eq=False)
class Case:
    """A model to fit, what ``fit`` is given, and what is done besides."""

    model: Any
    X: Any
    y: Any
    options: dict[str, Any] = field(default_factory=dict)
    besides: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.model}\nX: {type(self.X).__name__} {self.X.shape}\n{self.X}\n" + (
            f"y: {self.y!r}\noptions: {self.options}\nbesides: {self.besides}\n"
        )


# Tables.


def _column(rng: Rng, n: int) -> Any:
    match int(rng.integers(13)):
        case 0:
            return np.full(n, one_of(rng, [0.0, 1.0, -3.5, 1e300]))
        case 1:
            return rng.integers(0, 3, n).astype(float)
        case 2:
            return rng.standard_normal(n) * one_of(rng, [1e-300, 1e-20, 1e20, 1e300])
        case 3:
            return np.where(rng.random(n) < 0.5, np.nan, rng.standard_normal(n))
        case 4:
            return np.exp(5 * rng.standard_normal(n))
        case 5:
            return np.sort(rng.standard_normal(n))
        case 6:
            return 1 + np.arange(n) * 2.0**-52
        case 7:
            return np.where(rng.random(n) < 0.95, 0.0, rng.standard_normal(n))
        case 8:
            return rng.choice([-0.0, 0.0, 5e-324, -5e-324, 1.7e308, -1.7e308], n)
    return rng.standard_normal(n)


def _table(rng: Rng, n: int) -> Any:
    d = int(one_of(rng, [1, 2, 3, 4, 8, 12]))
    columns = [_column(rng, n) for _ in range(d)]
    X = np.column_stack(columns)
    if rng.random() < 0.15:
        X = X[rng.integers(0, max(n // 4, 1), n)]
    if rng.random() < 0.02:
        X[int(rng.integers(n)), int(rng.integers(d))] = one_of(rng, [np.inf, -np.inf])
    match int(rng.integers(10)):
        case 0:
            with np.errstate(all="ignore"):
                return X.astype(np.float32)
        case 1:
            return np.asfortranarray(X)
        case 2:
            return sparse.csr_matrix(np.where(np.isnan(X), 0, X))
        case 3:
            return np.nan_to_num(X, posinf=1, neginf=-1).clip(-100, 100).astype(np.int8)
        case 4 | 5 | 6:
            return _frame(rng, X)
        case 7:
            wide = np.repeat(X, 2, axis=1)[:, ::2]
            wide.flags.writeable = False
            return wide
    return X


def _frame(rng: Rng, X: Any) -> pd.DataFrame:
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    n = len(frame)
    for k in range(int(rng.integers(3))):
        size = int(one_of(rng, [1, 2, 5, 40, 400]))
        names = np.array([f"name {j}" for j in range(size)], dtype=object)
        values = names[rng.integers(0, size, n)]
        values[rng.random(n) < one_of(rng, [0, 0.2, 1.0])] = None
        frame[f"category {k}"] = pd.Categorical(values)
    if rng.random() < 0.2:
        frame["truth"] = rng.random(n) < 0.3
    return frame


def _labels(rng: Rng, X: Any, n: int) -> Any:
    n_classes = int(one_of(rng, [2, 2, 2, 2, 3, 3, 4, 5]))
    match int(rng.integers(6)):
        case 0:
            y = np.zeros(n, dtype=int)
            y[rng.permutation(n)[: n_classes - 1]] = np.arange(1, n_classes)[:n]
        case 1:
            y = rng.integers(0, n_classes, n)
        case 2:
            first = X.iloc[:, 0] if hasattr(X, "iloc") else X[:, [0]]
            first = first.toarray() if sparse.issparse(first) else np.asarray(first)
            y = pd.Series(first.ravel().astype(float)).rank(pct=True).fillna(0).to_numpy()
            y = np.digitize(y, np.linspace(0.6, 0.95, n_classes - 1))
        case 3:
            y = np.sort(rng.integers(0, n_classes, n))
        case _:
            rates = np.r_[1, 0.1 * np.ones(n_classes - 1)]
            y = rng.choice(n_classes, n, p=rates / rates.sum())
    match int(rng.integers(8)):
        case 0:
            return np.array(["no", "yes", "ö", "d", "e"])[y]
        case 1 if n_classes == 2:
            return y.astype(bool)
        case 2:
            return y * 2.0 - 3
        case 3:
            return pd.Series(np.array(["x", "y", "z", "a", "b"], dtype=object)[y])
    return y


def _weights(rng: Rng, n: int) -> Any:
    match int(rng.integers(14)):
        case 0:
            return rng.random(n)
        case 1:
            return 10.0 ** rng.uniform(-30, 30, n)
        case 2:
            return (rng.random(n) < 0.5).astype(float)
        case 3:
            weights = np.zeros(n)
            weights[int(rng.integers(n))] = 1
            return weights
        case 4:
            weights = np.ones(n)
            weights[int(rng.integers(n))] = one_of(
                rng, [2.0**-31, 2.0**-30, 2.0**-32, 1e308]
            )
            return weights
        case 5:
            weights = np.ones(n)
            weights[int(rng.integers(n))] = one_of(rng, [np.nan, np.inf, -1.0, 5e-324])
            return weights
        case 6:
            return np.full(n, one_of(rng, [1e-300, 1e300, 5e-324, 3.0, 2.0**-31]))
        case 7:
            return rng.integers(0, 4, n)
    return None


# Settings.


def _threshold(rng: Rng, n_classes: int) -> Any:
    two = ["vote", "f1", {"fbeta": 2}, {"recall": 0.9}, {"precision": 0.5}, 0.1, -1.0, 1.0]
    two += [{"cost": (1, 20)}, {"cost": (1e-300, 1e300)}, {"recall": 1.0}, "vote"]
    two += [{"precision": 1.0}, 5.0]
    many = ["vote", "macro_f1", [1.0, 2.0, 0.5, 1e-9, 1e9][:n_classes]]
    if rng.random() < 0.05:
        return one_of(rng, [*two, *many])
    return one_of(rng, two if n_classes == 2 else many)


def _fast_tree(rng: Rng) -> Any:
    options = {
        "max_depth": one_of(rng, [None, 1, 3, 30]),
        "min_samples_leaf": one_of(rng, [1, 1, 5, 50]),
        "max_features": one_of(rng, [None, 1, "sqrt", 0.5]),
    }
    known = FastTreeClassifier().get_params()
    return FastTreeClassifier(**{k: v for k, v in options.items() if k in known})


def _voter(rng: Rng) -> Any:
    match int(rng.integers(9)):
        case 0:
            return GaussianNB()
        case 1:
            return make_pipeline(StandardScaler(), LogisticRegression(max_iter=50))
        case 2:
            return DecisionTreeClassifier(max_depth=int(rng.integers(1, 6)))
        case 3:
            return FastForestClassifier(3, random_state=0)
        case 4:
            return DummyClassifier(strategy=one_of(rng, ["prior", "most_frequent"]))
        case 5:
            return HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2)
    return _fast_tree(rng)


def _shared(rng: Rng, n_classes: int) -> dict[str, Any]:
    return {
        "reweight": one_of(rng, [True, False, 0.5, 0.0, 1.0]),
        "shrinkage": one_of(rng, [0.0, 0.0, 0.001, 0.3, 0.999]),
        "solver": one_of(rng, ["exact", "exact", "exact", "slsqp", "uniform"]),
        "threshold": _threshold(rng, n_classes),
        "unlabeled_weight": one_of(rng, [0.0, 0.0, 0.0, 0.5, 0.99]),
        "fit_intercept": one_of(rng, [True, False]),
        "random_state": int(rng.integers(100)),
        "n_jobs": one_of(rng, [None, None, None, 2]),
    }


def _bagging(rng: Rng, n_classes: int) -> Any:
    options = _shared(rng, n_classes) | {
        "n_estimators": int(one_of(rng, [1, 2, 3, 10, 30])),
        "max_samples": one_of(rng, [0.01, 0.2, 0.5, 1.0, 1, 2, 50]),
        "bootstrap": one_of(rng, [True, True, False, "poisson"]),
        "stratified": bool(rng.random() < 0.3),
        "votes": one_of(rng, ["train", "oob"]),
        "estimator": one_of(rng, [None, None, _fast_tree(rng), _voter(rng)]),
    }
    known = DAMVIClassifier().get_params(deep=False)
    return DAMVIClassifier(**{k: v for k, v in options.items() if k in known})


def _pool(rng: Rng, n_classes: int) -> Any:
    voters = [(f"v{k}", _voter(rng)) for k in range(int(one_of(rng, [1, 2, 3, 5])))]
    options = _shared(rng, n_classes) | {
        "voting": one_of(rng, ["soft", "soft", "hard"]),
        "cv": one_of(rng, [2, 2, 3, None, KFold(2), StratifiedKFold(2), GroupKFold(2)]),
        "calibration": one_of(rng, ["auto", "platt", "isotonic", None]),
        "balance": one_of(rng, [0.0, 0.25, 1.0]),
    }
    known = DAMVIVotingClassifier().get_params(deep=False)
    options = {k: v for k, v in options.items() if k in known}
    return DAMVIVotingClassifier(voters, **options)


class Fits:
    """The kind ``fits``.

    Parameters
    ----------
    n_warm : int
        Fits before the first fork, to compile what most of them take.
    """

    name = "fits"
    per_child = 25

    def __init__(self, n_warm: int = 150) -> None:
        self.n_warm = n_warm

    def warm(self) -> None:
        warnings.simplefilter("ignore")
        for number in range(self.n_warm):
            case = self.make(np.random.default_rng([99, number]))
            case.model.set_params(n_jobs=None)
            try:
                self.check(Case(case.model, case.X, case.y, case.options, ("save",)))
            except Exception:
                continue

    def make(self, rng: Rng) -> Case:
        n = int(one_of(rng, [2, 3, 6, 10, 20, 30, 50, 80, 80, 150, 150, 300]))
        X = _table(rng, n)
        y = _labels(rng, X, n)
        pool = rng.random() < 0.4
        model = (_pool if pool else _bagging)(rng, len(set(y)))
        options: dict[str, Any] = {}
        if (weights := _weights(rng, n)) is not None:
            options["sample_weight"] = weights
        if pool and (isinstance(model.cv, GroupKFold) or rng.random() < 0.15):
            options["groups"] = rng.integers(0, one_of(rng, [2, 5, 30]), n)
        if rng.random() < 0.15:
            some = rng.integers(0, n, int(one_of(rng, [1, 5, 40])))
            options["X_unlabeled"] = X.iloc[some] if hasattr(X, "iloc") else X[some]
        besides = [
            name
            for name, often in (("jobs", 0.15), ("save", 0.15), ("again", 0.1))
            if rng.random() < often
        ]
        if rng.random() < 0.25:
            besides.append(one_of(rng, ["reweigh", "prune", "choose"]))
        return Case(model, X, y, options, tuple(besides))

    def check(self, case: Case) -> str:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            outcome = self._check(case)
        for one in said:
            ours = str(one.filename).startswith(SOURCE)
            if ours and issubclass(one.category, RuntimeWarning):
                where = Path(one.filename).relative_to(SOURCE)
                raise Finding("warning", f"{where}:{one.lineno}: {one.message}")
        return outcome

    def _check(self, case: Case) -> str:
        try:
            model = case.model.fit(case.X, case.y, **case.options)
        except (ValueError, TypeError) as error:
            _must_be_ours(error)
            return "refused"
        answers = examine(model, case.X)
        perturb(0xA5)
        again = model.predict_proba(case.X)
        perturb(0)
        if not np.array_equal(answers[3], again):
            raise Finding("impure", "another answer when asked again")
        for what in case.besides:
            getattr(self, f"_{what}")(case, model, answers)
        return "fits"

    def _jobs(self, case: Case, model: Any, answers: list[Any]) -> None:
        other = 2 if model.n_jobs is None else None
        twin = clone(model).set_params(n_jobs=other).fit(case.X, case.y, **case.options)
        _must_equal(answers, examine(twin, case.X), f"another answer by n_jobs={other}")

    def _again(self, case: Case, model: Any, answers: list[Any]) -> None:
        perturb(0x5A)
        twin = clone(model).fit(case.X, case.y, **case.options)
        perturb(0)
        _must_equal(answers, examine(twin, case.X), "another model when fitted again")

    def _save(self, case: Case, model: Any, answers: list[Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.damvi"
            try:
                save(model, path)
            except ModelFileError:
                return
            loaded = load(path)
        _must_equal(answers, examine(loaded, case.X), "another answer once loaded")

    def _reweigh(self, case: Case, model: Any, answers: list[Any]) -> None:
        self._change(case, model, lambda: model.reweigh(reweight=0.3, shrinkage=0.1))

    def _prune(self, case: Case, model: Any, answers: list[Any]) -> None:
        self._change(case, model, lambda: model.prune(2))

    def _choose(self, case: Case, model: Any, answers: list[Any]) -> None:
        few = {"reweight": [0.0, 0.5], "shrinkage": [0.0, 0.1]}
        self._change(case, model, lambda: model.reweigh(**model.choose(**few).best))

    def _change(self, case: Case, model: Any, change: Any) -> None:
        try:
            change()
        except ValueError as error:
            _must_be_ours(error)
            return
        examine(model, case.X)

    def keep(self, case: Case, folder: Path) -> None:
        (folder / "case.txt").write_text(str(case))
        (folder / "besides.json").write_text(json.dumps(case.besides))


def _must_be_ours(error: Exception) -> None:
    """Raised by us or by scikit-learn's checks, not by arithmetic that was not foreseen."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    ours = last.filename.startswith(SOURCE)
    said = (last.line or "").startswith("raise") and isinstance(error, ValueError)
    said |= ours and str(error).startswith("voter '")  # and what it failed of
    theirs = any("/sklearn/" in frame.filename for frame in frames)
    if not (said if ours else theirs):
        raise Finding("unforeseen", _shown(error))


def _shown(error: Exception) -> str:
    return "".join(traceback.format_exception(error))[-1900:]


def examine(model: Any, X: Any) -> list[Any]:
    """All that a model says, if it is what it is said to be."""
    weights = model.weights_
    if not (np.isfinite(weights) & (weights >= 0)).all() or abs(weights.sum() - 1) > 1e-9:
        raise Finding("wrong", f"weights {weights[:5]}, of sum {weights.sum()}")
    for name in ("c_bound_", "gibbs_risk_", "disagreement_"):
        if not np.isfinite(getattr(model, name)):
            raise Finding("wrong", f"{name} is {getattr(model, name)}")
    if np.isnan(model.threshold_).any():
        raise Finding("wrong", f"threshold_ is {model.threshold_}")
    n, n_classes = len(X) if not sparse.issparse(X) else X.shape[0], len(model.classes_)
    vote, chances, decided = model.vote(X), model.predict_proba(X), model.predict(X)
    low = -1 if n_classes == 2 else 0
    shape = (n,) if n_classes == 2 else (n, n_classes)
    if vote.shape != shape or chances.shape != (n, n_classes) or decided.shape != (n,):
        raise Finding("wrong", f"shapes {vote.shape}, {chances.shape}, {decided.shape}")
    if not (np.isfinite(vote) & (vote >= low) & (vote <= 1)).all():
        raise Finding("wrong", f"votes such as {vote.ravel()[:5]}")
    if not (np.isfinite(chances) & (chances >= 0) & (chances <= 1)).all():
        raise Finding("wrong", f"probabilities such as {chances.ravel()[:5]}")
    if not np.allclose(chances.sum(axis=1), 1, atol=1e-6):
        raise Finding("wrong", f"probabilities that add up to {chances.sum(axis=1)[:5]}")
    if not np.isin(decided, model.classes_).all():
        raise Finding("wrong", f"decisions such as {decided[:5]}")
    try:
        known = model.oob_decision_function_
    except ValueError as error:  # too few rows to judge any
        _must_be_ours(error)
        known = np.zeros(0)
    if np.isinf(known).any():
        raise Finding("wrong", "out-of-sample votes without end")
    return [weights, np.asarray(model.threshold_), vote, chances, decided, known]


def _must_equal(ours: list[Any], theirs: list[Any], message: str) -> None:
    names = ("weights", "threshold", "vote", "probabilities", "decisions", "oob")
    for name, one, other in zip(names, ours, theirs, strict=True):
        same = np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        if not same:
            raise Finding("impure", f"{message} ({name})")
