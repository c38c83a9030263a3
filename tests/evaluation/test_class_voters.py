"""The voters' figures of many classes, against scikit-learn and row by row."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from damvi import DAMVIClassifier
from damvi.evaluation.class_voters import (
    class_rows_to_look_at,
    class_voter_figures,
    classes_named,
)
from damvi.evaluation.voters import MAX_ROWS, voters_of_fit

NAMES = [f"v{k}" for k in range(5)]
WEIGHTS = np.array([0.5, 0.0, 0.3, 0.2, 0.0])


def ballots(n=240, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(4, p=[0.1, 0.2, 0.6, 0.1], size=n)
    wrong = rng.random((n, 5)) < 0.4
    return np.where(wrong, rng.integers(0, 4, (n, 5)), labels[:, None]), labels


@pytest.mark.parametrize("masked", [False, True])
def test_kappa_and_errors_by_hand(masked):
    named, labels = ballots()
    rng = np.random.default_rng(1)
    unseen = rng.random(named.shape) < 0.7 if masked else np.ones(named.shape, bool)
    found = class_voter_figures(
        named, labels, WEIGHTS, NAMES, 4, hard=labels == 0, unseen=unseen
    )
    D = 1 / np.bincount(labels)[labels]
    pairs = zip(*np.triu_indices(5, 1), strict=True)
    for at, (j, k) in enumerate(pairs):
        both = unseen[:, j] & unseen[:, k]
        kappa = cohen_kappa_score(named[both, j], named[both, k], sample_weight=D[both])
        assert found["pairs"]["kappa"][at] == pytest.approx(kappa, abs=1e-4)
    for k in range(5):
        rates = [np.mean(named[(labels == c) & unseen[:, k], k] != c) for c in range(4)]
        assert found["errors"][f"v{k}"] == pytest.approx(np.mean(rates), abs=1e-4)
    right = (named == labels[:, None]) & unseen
    assert found["hard"]["total"] == (labels == 0).sum()
    assert found["hard"]["found_by_none"] == (~right[labels == 0].any(axis=1)).sum()
    assert (found["survived"], found["half"]) == (3, 1)


def test_soft_votes_count_by_the_factors():
    votes = np.array([[[0.6, 0.3, 0.1]]])
    assert classes_named(votes, np.ones(3)) == 0
    assert classes_named(votes, np.array([1.0, 3.0, 1.0])) == 1
    assert classes_named(np.array([[2]], np.uint8), np.array([9.0, 1, 1])) == 2


@pytest.mark.parametrize("sizes", [(3, 90_000, 40), (30_000, 30_000, 30_000), (0, 5, 7)])
def test_a_sample_keeps_the_rare_classes(sizes):
    labels = np.repeat([0, 1, 2], sizes)
    rows = class_rows_to_look_at(labels, 3)
    assert len(rows) == min(MAX_ROWS, sum(sizes)) == len(set(rows.tolist()))
    kept = np.bincount(labels[rows], minlength=3)
    assert (kept >= np.minimum(sizes, MAX_ROWS // 3)).all()


def test_of_a_fit_only_votes_on_unseen_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 3)), rng.choice(3, p=[0.1, 0.2, 0.7], size=500)
    model = DAMVIClassifier(n_estimators=15, max_samples=0.9, random_state=0).fit(X, y)
    found = voters_of_fit(model)
    assert found["of_fit"]
    # Coin flips: in sample the trees are nearly perfect, out of it they are not.
    assert np.mean(list(found["errors"].values())) > 0.5
    decided = model.oob_decision_function_.argmax(axis=1)
    assert found["hard"]["total"] == ((y != decided) & (y != 2)).sum()
    assert None in found["hard"]["says"][0]
