"""The first two of each row, kept up while factors change, are those of a new start."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from damvi.decision.class_race import Race


@given(seed=st.integers(0, 10**6))
def test_factors_that_change_one_by_one_are_those_of_a_new_start(seed):
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 7))
    vote = rng.integers(0, 4, (30, n_classes)) / 4  # with ties, and classes without votes
    labels, weight = rng.integers(0, n_classes, 30), rng.choice([0.5, 1, 2], 30)
    race = Race(vote, labels, weight, np.ones(n_classes))
    for _ in range(6):
        race.set_factor(int(rng.integers(n_classes)), float(rng.choice([0.25, 0.5, 1, 3])))
    again = Race(vote, labels, weight, race.factors.copy())
    assert race.sum_of_f1() == again.sum_of_f1()
    for c in range(n_classes):
        assert race.best_factor(c) == again.best_factor(c)
