"""Moments of the negatives from unlabelled rows, against sums written out."""

from dataclasses import replace

import numpy as np
import pytest
from damvi.ballots import Ballots
from damvi.unlabelled import Crowd
from damvi.weighing import Rule, weigh

from damvi.folds import deal_folds


def votes_on(signs, seed, n_voters=5, soft=False, skill=0.8):
    rng = np.random.default_rng(seed)
    votes = np.tanh(skill * signs[:, None] + rng.normal(size=(len(signs), n_voters)))
    votes = votes if soft else np.where(votes > 0, 1, -1)
    return np.asfortranarray(votes, dtype=np.float32 if soft else np.int8)


def signs_of(n, seed, rate=0.2):
    signs = np.where(np.random.default_rng(seed).random(n) < rate, 1, -1)
    return signs.astype(np.int8)


def ballots_of(n=60, seed=0, *, soft=False, masked=False, weighted=False, lean=1.0):
    rng, signs = np.random.default_rng([seed, 1]), signs_of(n, seed)
    votes = votes_on(signs, seed, soft=soft)
    unseen = np.packbits(rng.random((votes.shape[1], n)) < 0.7, axis=1) if masked else None
    base = np.ldexp(rng.integers(1, 9, n), -3) if weighted else None
    folds = deal_folds(signs, 0, 3)
    return Ballots(votes, signs, base, folds, unseen, only_unseen=masked, lean=lean)


def crowd_of(n=500, seed=7, soft=False, rate=None, **options):
    votes = votes_on(signs_of(n, seed), seed, soft=soft)
    return Crowd.count([(votes, None)], rate, **options)


def whole(tallies):
    return sum(tallies[1:], start=tallies[0])


def slow_moments(ballots, crowd, strength, eta):
    """The refined moments, before the projection, pair by pair and row by row."""
    n, n_voters = ballots.votes.shape
    votes = ballots.votes.astype(float)
    seen = np.ones((n, n_voters), bool) if ballots.mask is None else ballots.mask
    base = np.ones(n) if ballots.base is None else ballots.base
    D = base.copy()
    for i in np.flatnonzero(ballots.signs > 0):
        plain = votes[i, seen[i]].mean() if seen[i].any() else 0.0
        D[i] *= ballots.lean * np.exp(-strength * plain)
    p = crowd.positive_rate
    if p is None:
        p = base[ballots.signs > 0].sum() / base.sum()
    m, M = np.zeros(n_voters), np.zeros((n_voters, n_voters))
    for j in range(n_voters):
        own = seen[:, j]
        m[j] = (D * ballots.signs * votes[:, j])[own].sum() / D[own].sum()
        for k in range(n_voters):
            rows = seen[:, j] & seen[:, k]
            up, down = rows & (ballots.signs > 0), rows & (ballots.signs < 0)
            pair = votes[:, j] * votes[:, k]
            natural = (base * pair)[up].sum() / base[up].sum()
            refined = (crowd.M[j, k] - p * natural) / (1 - p)
            labelled = (base * pair)[down].sum() / base[down].sum()
            mixed = (1 - eta) * labelled + eta * refined
            total = base[down].sum() * mixed + (D * pair)[up].sum()
            M[j, k] = total / (base[down].sum() + D[up].sum())
    return m, M


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("rate", [None, 0.1])
def test_the_refined_moments_are_those_of_the_formula(soft, masked, rate):
    ballots = ballots_of(120, soft=soft, masked=masked, weighted=True, lean=2.0)
    crowd = crowd_of(soft=soft, rate=rate)
    tally = whole(replace(ballots, crowd=crowd).tallies(1.0, 0.4))
    assert tally.settled_eta == 0.4
    m, M = slow_moments(ballots, crowd, 1.0, 0.4)
    assert np.linalg.eigvalsh(M)[0] > 1e-3  # so that the projection changes nothing
    found = tally.moments().normalised()
    np.testing.assert_allclose(found[0], m, atol=1e-8)
    np.testing.assert_allclose(found[1], M, atol=1e-7)


@pytest.mark.parametrize("soft", [False, True])
def test_labelled_rows_taken_for_unlabelled_ones_say_nothing_new(soft):
    ballots = ballots_of(200, soft=soft)
    crowd = Crowd.count([(ballots.votes, None)])
    tally = whole(replace(ballots, crowd=crowd).tallies(1.0, 0.7))
    plain = whole(ballots.tallies(1.0))
    refined, known = tally.negatives()
    negatives = plain.negatives
    assert known.all()
    np.testing.assert_allclose(refined, negatives.M / negatives.total, atol=1e-12)
    for ours, theirs in zip(
        tally.moments().normalised(), plain.moments().normalised(), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_without_eta_the_tallies_are_the_labelled_ones():
    ballots = ballots_of()
    refined = replace(ballots, crowd=crowd_of())
    one, other = weigh(ballots, Rule()), weigh(refined, Rule(eta=0.0))
    np.testing.assert_array_equal(one.weights, other.weights)
    np.testing.assert_array_equal(one.unseen_vote, other.unseen_vote)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("jointly", [False, True])
def test_the_moments_are_positive_semi_definite_and_keep_what_they_promise(masked, jointly):
    lowered = 0
    for seed in range(30):
        ballots = ballots_of(25, seed, masked=masked)
        if (ballots.signs > 0).sum() < 3:
            continue
        # A crowd of other voters altogether, and a rate far from the truth.
        crowd = crowd_of(40, seed + 100, rate=0.6)
        ballots = replace(ballots, crowd=crowd)
        tally = whole(ballots.tallies(1.0, 0.9))
        lowered += tally.settled_eta < 0.9
        moments = tally.moments()
        assert np.linalg.eigvalsh(moments.normalised()[1])[0] >= -1e-12
        weighing = weigh(ballots, Rule(eta=0.9, jointly=jointly))
        assert weighing.weights.min() >= 0
        assert weighing.weights.sum() == pytest.approx(1)
        if tally.settled_eta > 0 and not jointly:
            Q = weighing.weights
            assert moments.mu1(Q) ** 2 <= moments.mu2(Q) * (1 + 1e-9)
    assert lowered > 0


def test_blocks_and_masks_add_up():
    votes = votes_on(signs_of(100, 3), 3)
    unseen = np.random.default_rng(0).random(votes.shape) < 0.6
    once = Crowd.count([(votes, unseen)])
    parts = Crowd.count([(votes[:33], unseen[:33]), (votes[33:], unseen[33:])])
    np.testing.assert_array_equal(once.M, parts.M)
    both = unseen[:, 1] & unseen[:, 4]
    assert once.M[1, 4] == pytest.approx((votes[both, 1] * votes[both, 4]).mean())
    np.testing.assert_array_equal(once.take(np.array([1, 4])).M, once.M[1::3, 1::3])


def test_a_pair_without_a_shared_positive_keeps_its_labelled_moments():
    ballots = ballots_of(80, masked=True)
    mask = ballots.mask.copy()
    mask[ballots.signs > 0, 0] = False  # voter 0 has seen all positives
    ballots = replace(ballots, unseen=np.packbits(mask.T, axis=1), crowd=crowd_of())
    _, known = whole(ballots.tallies(1.0, 0.5)).negatives()
    assert not known[0].any()
    assert known[1:, 1:].all()
    assert np.isfinite(weigh(ballots, Rule(eta=0.5)).weights).all()
