"""The voters' figures: against the library's own measures, and row by row."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from damvi import DAMVIClassifier
from damvi.diversity import kappa, voter_errors
from damvi.evaluation import FittedVote, voter_figures, voters_of_fit
from damvi.evaluation.voters import MAX_ROWS, rows_to_look_at


def ballots(n=200, K=6, seed=0):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.2
    votes = np.where(rng.random((n, K)) < 0.25, -1, 1) * np.where(positive, 1, -1)[:, None]
    weights = np.array([0.5, 0.0, 0.3, 0.2, 0.0, 0.0])
    return votes, positive, weights


def figures_of(votes, positive, weights, **settings):
    names = [f"v{k}" for k in range(len(weights))]
    hard = positive & (votes @ weights <= 0)
    labels, decided = positive.astype(int), (votes > 0).astype(int)
    return voter_figures(decided, labels, weights, names, 2, hard=hard, **settings), hard


def test_as_the_measures_of_diversity():
    votes, positive, weights = ballots()
    found, _ = figures_of(votes, positive, weights)
    balance = np.where(positive, 1 / positive.sum(), 1 / (~positive).sum())
    j, k = np.triu_indices(6, 1)
    expected = kappa(votes, sample_weight=balance)[j, k]
    errors = voter_errors(votes, positive.astype(int), sample_weight=balance)
    assert found["pairs"]["kappa"] == pytest.approx(expected, abs=1e-4)
    assert found["pairs"]["error"] == pytest.approx((errors[j] + errors[k]) / 2, abs=1e-4)
    assert [found["errors"][f"v{i}"] for i in range(6)] == pytest.approx(errors, abs=1e-4)
    assert (found["survived"], found["half"], found["voters"]) == (3, 1, 6)


def test_votes_on_rows_that_a_voter_has_seen_do_not_count():
    votes, positive, weights = ballots(60)
    unseen = np.random.default_rng(1).random(votes.shape) < 0.6
    found, hard = figures_of(votes, positive, weights, unseen=unseen)
    for k in range(6):
        rates = [
            np.mean(votes[(positive == side) & unseen[:, k], k] != (1 if side else -1))
            for side in (False, True)
        ]
        assert found["errors"][f"v{k}"] == pytest.approx(np.mean(rates), abs=1e-4)
    seen_by_none = [
        not any(votes[i, k] > 0 and unseen[i, k] for k in range(6))
        for i in np.flatnonzero(hard)
    ]
    assert found["hard"]["found_by_none"] == sum(seen_by_none)
    assert found["hard"]["total"] == hard.sum()
    said = np.array(found["hard"]["says"], dtype=float)
    assert np.isnan(said).sum() == (~unseen[hard][:, [0, 2, 3, 1, 4, 5]]).sum()


@pytest.mark.parametrize("sizes", [(5, 100_000), (60_000, 3), (15_000, 15_000), (0, 10)])
def test_a_sample_keeps_the_rare_class(sizes):
    positive = np.repeat([True, False], sizes)
    rows = rows_to_look_at(positive.astype(int), 2)
    assert len(rows) == min(MAX_ROWS, sum(sizes)) == len(set(rows.tolist()))
    assert positive[rows].sum() >= min(sizes[0], MAX_ROWS // 2)
    assert (~positive[rows]).sum() >= min(sizes[1], MAX_ROWS // 2)


def test_of_a_fit_only_votes_on_unseen_rows(table):
    X, y = table
    model = DAMVIClassifier(n_estimators=15, max_samples=0.9, random_state=0).fit(X, y)
    found = voters_of_fit(model)
    assert found["of_fit"]
    # In sample the trees are nearly perfect; out of it they are not.
    inside = voter_errors(model.cast_votes(X), y).mean()
    assert np.mean(list(found["errors"].values())) > 2 * inside
    assert (
        found["hard"]["total"]
        == (y.astype(bool) & (model.oob_decision_function_ <= 0)).sum()
    )


NAMES = [f"v{k}" for k in range(5)]
WEIGHTS = np.array([0.5, 0.0, 0.3, 0.2, 0.0])


def decisions(n=240, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(4, p=[0.1, 0.2, 0.6, 0.1], size=n)
    wrong = rng.random((n, 5)) < 0.4
    return np.where(wrong, rng.integers(0, 4, (n, 5)), labels[:, None]), labels


@pytest.mark.parametrize("masked", [False, True])
def test_kappa_and_errors_by_hand(masked):
    named, labels = decisions()
    rng = np.random.default_rng(1)
    unseen = rng.random(named.shape) < 0.7 if masked else np.ones(named.shape, bool)
    found = voter_figures(named, labels, WEIGHTS, NAMES, 4, hard=labels == 0, unseen=unseen)
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
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), np.arange(90) % 3
    model = DAMVIClassifier(n_estimators=3, threshold=[1.0, 3.0, 1.0], random_state=0)
    fitted = FittedVote(model.fit(X, y))
    assert fitted.decided_by_each(np.array([[[0.6, 0.3, 0.1]]])) == 1
    assert fitted.decided_by_each(np.array([[[0.7, 0.2, 0.1]]])) == 0
    assert fitted.decided_by_each(np.array([[2]], np.uint8)) == 2


@pytest.mark.parametrize("sizes", [(3, 90_000, 40), (30_000, 30_000, 30_000), (0, 5, 7)])
def test_a_sample_keeps_all_rare_classes(sizes):
    labels = np.repeat([0, 1, 2], sizes)
    rows = rows_to_look_at(labels, 3)
    assert len(rows) == min(MAX_ROWS, sum(sizes)) == len(set(rows.tolist()))
    kept = np.bincount(labels[rows], minlength=3)
    assert (kept >= np.minimum(sizes, MAX_ROWS // 3)).all()


def test_of_a_fit_of_many_classes_only_votes_on_unseen_rows():
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
