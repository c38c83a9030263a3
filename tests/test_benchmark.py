"""The paired comparison: the same rows for all, honest thresholds, marks that hold."""

import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy.stats import ttest_1samp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification

from damvi.benchmark import Comparison, columns, compare, holm, paired_p
from damvi.contenders import CONTENDERS, Contender

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table():
    X, y = make_classification(300, 5, weights=[0.85], flip_y=0.05, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["f"] = pd.Categorical(np.where(frame.a > 0, "p", "q"))
    frame.loc[::9, "b"] = np.nan
    return frame, np.where(y == 1, "bad", "good")


@pytest.fixture
def add(monkeypatch):
    def add(name, estimator):
        entry = Contender(name, lambda seed, n_jobs: estimator)
        monkeypatch.setitem(CONTENDERS, name, entry)

    return add


def made(**scores):
    """A comparison with these F1 scores, and AP 0.1 higher."""
    rows = [
        (name.replace("_", "-"), s, f, f + 0.1, 1.0, "")
        for name, values in scores.items()
        for s, f in enumerate(values)
    ]
    return Comparison(pd.DataFrame(rows, columns=columns()), 0.3)


def test_contenders_on_a_table_with_gaps_and_categories(table):
    found = compare(*table, ["R-DT", "DAMVI", "uniform", "RF"], n_splits=2)
    assert found.scores["note"].eq("").all()
    assert found.scores["f1"].between(0.1, 1).all()
    assert found.reference == "DAMVI"
    again = compare(*table, ["DAMVI"], n_splits=2)
    ours = found.scores[found.scores.contender == "DAMVI"]
    assert ours[["f1", "ap"]].to_numpy().tolist() == (
        again.scores[["f1", "ap"]].to_numpy().tolist()
    )


def test_three_classes_have_factors_tuned_for_all():
    X, y = make_classification(
        300, 6, n_informative=4, n_classes=3, weights=[0.8, 0.12], random_state=0
    )
    found = compare(X, y, ["DAMVI", "RF"], n_splits=1)
    assert found.scores["note"].eq("").all()
    assert "Macro F1 and macro average precision of 3 classes" in found.caption
    # The mean over classes, of which a forest's plain decision misses the rare ones.
    assert found.scores["f1"].min() > 0.4


def test_what_a_budget_of_alerts_finds(table):
    X, y = table
    found = compare(X, y, ["DAMVI", "RF"], n_splits=2, top=20)
    scores = found.scores
    hits = scores["top_precision"] * 20
    assert np.allclose(hits, scores["top_recall"] * (y == "bad").sum() * 0.3, atol=0.5)
    assert (hits.between(1, 20)).all()
    assert "| precision@20 | recall@20 | seconds |" in str(found)
    assert "in the 20 top test rows, over 2 splits" in found.caption
    assert {"top_precision_p", "top_recall_mark"} <= {*found.summary.columns}
    whole = compare(X, y, ["DAMVI"], n_splits=1, top=10_000).scores.iloc[0]
    assert whole["top_recall"] == 1
    for top in (0, 2.5, "abc", True):
        with pytest.raises(ValueError, match="must be a whole number of rows, at least 1"):
            compare(X, y, ["DAMVI"], top=top)
    kinds = np.where(y == "bad", "bad", np.where(X.c > 0, "good", "fair"))
    found = compare(X, kinds, ["DAMVI"], n_splits=1, top=90)
    assert found.scores["top_recall"].item() == 1  # of each class, all rows
    assert found.scores["top_precision"].item() == pytest.approx(1 / 3)


def test_groups_stay_whole(table, add):
    shared = []

    class Spy(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_, self.seen_ = np.unique(y), set(X[:, 0])
            return self

        def predict_proba(self, X):
            shared.append(self.seen_ & set(X[:, 0]))
            return np.column_stack([1 - X[:, 0] / 50, X[:, 0] / 50])

        def predict(self, X):
            return (X[:, 0] > 25).astype(int)

    add("spy", Spy())
    groups = np.arange(300) // 6
    X = groups[:, np.newaxis].astype(float)
    found = compare(X, table[1], ["spy"], groups=groups, n_splits=2)
    assert found.scores["note"].eq("").all()
    assert shared  # in splits and in the folds of thresholds
    assert not any(shared)


def test_what_fails_is_a_note_and_the_rest_goes_on(table, add):
    class Broken(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            raise RuntimeError("no & never")

        def predict(self, X):
            raise NotImplementedError

        predict_proba = predict

    add("broken", Broken())
    found = compare(*table, ["broken", "RF"], n_splits=2)
    assert found.reference is None
    assert "[1] broken: 0 of 2 splits. RuntimeError: no & never" in found.to_markdown()
    assert r"no \& never" in found.to_latex()
    assert "| RF | **" in str(found)


def test_known_scores_are_not_computed_again(table):
    rows = []
    found = compare(*table, ["R-DT"], n_splits=2, follow=lambda d, t, row: rows.append(row))
    assert len(rows) == 2
    known = found.scores.assign(f1=[0.5, np.nan])  # what failed is tried again
    again = compare(
        *table, ["R-DT"], n_splits=3, known=known, follow=lambda d, t, row: rows.append(t)
    )
    assert rows[2:] == [2, 2]
    assert again.scores["f1"][0] == 0.5


def test_the_corrected_test_is_the_plain_one_with_a_larger_variance():
    rng = np.random.default_rng(0)
    d = rng.normal(0.02, 0.01, size=10)
    plain = ttest_1samp(d, 0).pvalue
    assert paired_p(d, 0.3) > plain
    assert paired_p(d, 1e-12) == pytest.approx(plain)
    assert paired_p([0.1, 0.1], 0.3) == 0
    assert paired_p([0.0, 0.0], 0.3) == 1
    assert np.isnan(paired_p([0.1], 0.3))


def test_holm_by_hand():
    assert holm([0.01, np.nan, 0.04, 0.03, 0.5]).tolist() == pytest.approx(
        [0.04, np.nan, 0.09, 0.09, 0.5], nan_ok=True
    )


def test_marks_say_who_is_significantly_worse_or_better():
    level = 0.5 + 0.002 * np.arange(10)
    noise = 0.003 * np.tile([1, -1], 5)
    found = made(
        DAMVI=level - 0.3,
        worse=level - 0.2 + noise,
        even=level + noise,
        better=level + 0.1 + noise,
        DAMVI_strong=level,
    )
    assert found.reference == "DAMVI-strong"
    assert found.summary["f1_mark"].tolist() == ["↓", "↓", "", "↑", ""]
    assert "| better | **0.609** ± 0.006 ↑ | **0.709** ± 0.006 ↑ | 1 |" in str(found)
    assert "significantly better than DAMVI-strong" in found.caption
    assert r"better & \textbf{0.609} $\pm$ 0.006 $\uparrow$" in found.to_latex()
    console = Console(width=60, file=io.StringIO())
    console.print(found.to_terminal())
    assert "0.609 ± 0.006 ↑" in console.file.getvalue()


def test_one_split_has_no_deviation_and_no_mark():
    found = made(DAMVI=[0.5], RF=[0.6])
    assert "| RF | **0.600** | **0.700** | 1 |" in found.to_markdown()
    assert "significantly" not in found.caption
