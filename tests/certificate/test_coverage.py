"""Certificates hold: 1,000 datasets from worlds where every risk is known.

A world is a finite list of kinds of rows, each with a chance, a label and the voters'
votes, so that the true risk of any vote is a sum. Weights and threshold are chosen anew on
each dataset, by that dataset: PAC-Bayes allows it.
"""

import numpy as np
import pytest
from scipy.special import rel_entr
from scipy.stats import binom

from damvi.certificate import (
    c_bound,
    clopper_pearson,
    clopper_pearson_upper,
    kl_upper,
    tandem,
    twice_gibbs,
)
from damvi.certificate.bounds import with_threshold

DATASETS, DELTA = 1000, 0.05
# Violations of a bound that fails in exactly 5 % of datasets: more in one of 1,000 runs.
ALLOWED = int(binom.ppf(0.999, DATASETS, DELTA))


class World:
    def __init__(self, soft, seed=0, kinds=300, voters=7):
        rng = np.random.RandomState(seed)
        self.chances = rng.dirichlet(np.ones(kinds))
        self.signs = np.where(rng.rand(kinds) < 0.3, 1, -1)
        hard_kind = rng.rand(kinds) < 0.15  # where all voters are poor, together
        right = rng.rand(kinds, voters) < np.where(hard_kind, 0.4, 0.85)[:, None]
        self.votes = np.where(right, 1, -1) * self.signs[:, None].astype(float)
        if soft:
            self.votes *= rng.beta(4, 1, size=(kinds, voters))

    def risk(self, vote, rows):
        """The true risk of deciding by vote > 0, ties wrong, on rows of some classes."""
        wrong = (self.signs[:, None] * vote <= 0) & rows[:, None]
        return self.chances @ wrong / (self.chances @ rows)

    def study(self, n, cut, seed=1):
        """For each dataset: counts of the kinds, learned vote, and KL of its weights."""
        rng = np.random.RandomState(seed)
        counts = rng.multinomial(n, self.chances, size=DATASETS)
        errors = counts @ ((1 - self.signs[:, None] * self.votes) / 2) / n
        Q = np.exp(-20 * errors)
        Q /= Q.sum(axis=1, keepdims=True)
        vote, kl = np.empty((len(self.signs), DATASETS)), np.empty(DATASETS)
        for i in range(DATASETS):
            v, q = self.votes @ Q[i], Q[i]
            P = np.full(len(q), 1 / len(q))
            if cut:
                grid = np.array([-0.3, -0.2, -0.1, 0.1, 0.2, 0.3])
                wrong = self.signs[:, None] * (v[:, None] - grid) <= 0
                v, q, P = with_threshold(v, q, grid[np.argmin(counts[i] @ wrong)])
            vote[:, i], kl[i] = v, rel_entr(q, P).sum()
        return counts, vote, kl


GROUPS = {
    "all": lambda s: s != 0,
    "positives": lambda s: s > 0,
    "negatives": lambda s: s < 0,
}


@pytest.fixture(scope="module", params=[False, True], ids=["threshold 0", "threshold t"])
def cut(request):
    return request.param


@pytest.fixture(scope="module", params=[False, True], ids=["hard", "soft"])
def study(request, cut):
    world = World(soft=request.param)
    return world, world.study(n=200, cut=cut)


def moments(world, counts, vote, rows):
    """Rows of a group in each dataset, and r, d, e on them."""
    inside = counts * rows
    n = inside.sum(axis=1)
    error = (1 - world.signs[:, None] * vote) / 2
    means = [
        np.einsum("ic,ci->i", inside, values) / n
        for values in (error, (1 - vote**2) / 2, error**2)
    ]
    return n, *(np.clip(mean, 0, 1) for mean in means)


@pytest.mark.parametrize("group", GROUPS)
def test_pac_bayes_bounds_hold(study, group):
    world, (counts, vote, kl) = study
    rows = GROUPS[group](world.signs)
    n, r, d, e = moments(world, counts, vote, rows)
    risk = world.risk(vote, rows)
    violations = {
        "2 x Gibbs": (risk > twice_gibbs(r, n, kl, DELTA)).sum(),
        "tandem": (risk > tandem(e, n, kl, DELTA)).sum(),
        "C-bound": (risk > c_bound(r, d, n, kl, DELTA)).sum(),
        "smallest of the three, δ/3 each": (
            risk
            > np.minimum.reduce(
                [
                    twice_gibbs(r, n, kl, DELTA / 3),
                    tandem(e, n, kl, DELTA / 3),
                    c_bound(r, d, n, kl, DELTA / 3),
                ]
            )
        ).sum(),
    }
    assert max(violations.values()) <= ALLOWED, violations


def test_the_bound_inside_holds_and_is_not_idle(study):
    """2 x leaves room to spare; the Gibbs risk itself is bounded without any."""
    world, (counts, vote, kl) = study
    error = (1 - world.signs[:, None] * vote) / 2
    n, r, _, _ = moments(world, counts, vote, world.signs != 0)
    bound = kl_upper(r, (kl + np.log(2 * np.sqrt(n) / DELTA)) / n)
    truth = world.chances @ error
    assert (truth > bound).sum() <= ALLOWED
    assert np.median(bound / truth) < 2


def test_the_sign_of_a_vote_with_its_threshold_as_a_voter_is_the_decision():
    rng = np.random.RandomState(0)
    vote, Q = rng.uniform(-1, 1, 500), rng.dirichlet(np.ones(4))
    for t in (-0.4, 0.7):
        new, weights, prior = with_threshold(vote, Q, t)
        np.testing.assert_array_equal(new > 0, vote > t)
        assert weights.sum() == pytest.approx(1)
        assert prior.sum() == pytest.approx(1)
        constant = np.full(500, -np.sign(t))
        np.testing.assert_allclose(new, weights[:4].sum() * vote + weights[4] * constant)


@pytest.mark.parametrize("rates", [(0.3, 0.02), (0.05, 0.001), (0.9, 0.5)])
def test_clopper_pearson_holds(rates):
    rng = np.random.RandomState(0)
    miss, alarm = rates
    positives = rng.binomial(1000, 0.05, size=DATASETS)
    missed = rng.binomial(positives, miss)
    alarms = rng.binomial(1000 - positives, alarm)
    above = (clopper_pearson_upper(missed, positives, DELTA / 2) < miss) | (
        clopper_pearson_upper(alarms, 1000 - positives, DELTA / 2) < alarm
    )
    assert above.sum() <= ALLOWED
    outside = np.zeros(DATASETS, dtype=bool)
    for errors, n, rate in ((missed, positives, miss), (alarms, 1000 - positives, alarm)):
        low, high = clopper_pearson(errors, n, DELTA / 2)
        outside |= (rate < low) | (rate > high)
    assert outside.sum() <= ALLOWED
    risk = 0.05 * miss + 0.95 * alarm
    assert (clopper_pearson_upper(missed + alarms, 1000, DELTA) < risk).sum() <= ALLOWED


def test_clopper_pearson_is_not_idle():
    errors = np.random.RandomState(0).binomial(2000, 0.1, size=DATASETS)
    violations = (clopper_pearson_upper(errors, 2000, DELTA) < 0.1).sum()
    assert violations >= binom.ppf(0.001, DATASETS, 0.04)
