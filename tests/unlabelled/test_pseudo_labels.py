"""Which unlabelled rows pass for what, and who knows of which labelled ones."""

import numpy as np
import pytest
from damvi.unlabelled import Committees, centroid_scores, most_confident
from damvi.unlabelled.committees import deal_parts
from scipy import sparse

from damvi.voters import BootstrapSampling


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("share", [0.2, 1.0])
def test_the_rate_of_positives_is_held_and_the_surest_rows_taken(rate, share):
    scores = np.random.default_rng(0).normal(size=1000)
    found = most_confident(scores, rate, share)
    assert found.positive.sum() == round(share * rate * 1000)
    assert (~found.positive).sum() == round(share * (1 - rate) * 1000)
    assert len(np.unique(found.rows)) == len(found.rows)
    up, down = found.rows[found.positive], found.rows[~found.positive]
    assert scores[up].min() == np.sort(scores)[-len(up)]
    assert scores[down].max() == np.sort(scores)[len(down) - 1]


def test_a_single_row_and_equal_scores():
    assert most_confident(np.zeros(1), 0.1).rows.tolist() == [0]
    found = most_confident(np.zeros(10), 0.1)
    assert found.rows.tolist() == [0, 1, 2, 3, 4][: len(found.rows)]


def test_centroids_tell_classes_apart_dense_and_sparse():
    rng = np.random.default_rng(0)
    signs = np.where(np.arange(60) % 6 == 0, 1, -1)
    X = rng.normal(size=(60, 2)) + 8.0 * (signs > 0)[:, None]
    fresh = np.array([[0.0, 0.0], [8.0, 8.0]])
    scores = centroid_scores(X, signs, fresh, seed=0)
    assert scores[0] < 0 < scores[1]
    thin = centroid_scores(sparse.csr_matrix(X), signs, sparse.csr_matrix(fresh), seed=0)
    np.testing.assert_allclose(thin, scores, atol=1e-6)
    same = centroid_scores(np.zeros((9, 1)), signs[:9], np.ones((1, 1)), seed=0)
    assert same == [0.0]  # fewer distinct rows than clusters


def test_parts_hold_two_thirds_of_each_class_and_leave_some_out():
    signs = np.where(np.arange(90) < 9, 1, -1)
    parts = deal_parts(signs, 10, seed=3)
    for part in parts:
        assert (signs[part] > 0).sum() == 6
        assert (signs[part] < 0).sum() == 54
    for part in deal_parts(signs[7:12], 10, seed=3):  # two positives: one of them
        assert (signs[7:12][part] > 0).sum() == 1
    with pytest.raises(ValueError, match=r"has 1 labelled row only.*'disagreement'"):
        deal_parts(signs[8:], 10, seed=3)


def test_a_voter_has_seen_what_its_committee_knows_and_what_it_drew():
    members = [np.array([0, 1, 4, 5]), np.array([2, 3, 6, 7])]
    draws = [
        BootstrapSampling.plan(np.array([-1, 1, -1, 1]), max_samples=3, seed=5)
        for _ in members
    ]
    voters = Committees(8, 4, members, draws, np.array([0, 0, 1, 1]))
    for voter in range(4):
        rows, times = voters.sample(voter)
        own = members[voter // 2]
        assert times.sum() == 3
        assert set(rows) <= set(own)
        unseen = set(np.flatnonzero(voters.out_of_bag(voter)))
        assert unseen == set(range(8)) - set(own[:2]) - set(rows)
    assert len({voters.random_state(voter) for voter in range(4)}) == 4
