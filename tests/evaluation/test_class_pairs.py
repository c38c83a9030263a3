"""The difference of two models on many classes, against the obvious slow way."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score

from damvi.evaluation.class_pairs import compare_classes

rng = np.random.default_rng(0)
TRUTH = rng.choice(4, p=[0.5, 0.3, 0.15, 0.05], size=400)
OURS, OTHER = np.eye(4)[TRUTH] + rng.normal(size=(2, 400, 4)) * [[[0.8]], [[1.0]]]
OURS = OURS.round(1)  # ties
ROWS_OF = [np.flatnonzero(np.equal(TRUTH, c)) for c in range(4)]


def macro_f1(rows, vote):
    decided = vote[rows].argmax(axis=1)
    return f1_score(TRUTH[rows], decided, average="macro", zero_division=0)


def macro_ap(rows, vote):
    return np.mean(
        [average_precision_score(np.equal(TRUTH[rows], c), vote[rows, c]) for c in range(4)]
    )


@pytest.mark.parametrize(("name", "slow"), [("macro_f1", macro_f1), ("macro_ap", macro_ap)])
def test_value_and_spread(name, slow):
    ours, other = ((vote, vote.argmax(axis=1)) for vote in (OURS, OTHER))
    found = compare_classes(name, TRUTH, ours, other)
    every = np.arange(400)
    assert found.value == pytest.approx(slow(every, OURS) - slow(every, OTHER))
    draws = []
    for _ in range(100):
        rows = np.concatenate([rng.choice(rows, len(rows)) for rows in ROWS_OF])
        draws.append(slow(rows, OURS) - slow(rows, OTHER))
    assert found.spread == pytest.approx(np.std(draws), rel=0.3)
    assert found.low == pytest.approx(np.quantile(draws, 0.05), abs=0.03)
    assert found.high == pytest.approx(np.quantile(draws, 0.95), abs=0.03)
    same = compare_classes(name, TRUTH, ours, ours)
    assert (same.value, same.low, same.high) == (0, 0, 0)
