"""On labels that are coin flips nothing can be learned, and the scores say so."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from damvi import DAMVIClassifier
from damvi.tables import TableEncoder
from damvi.voters import BootstrapSampling

N, SEEDS, VOTERS = 1000, 20, 100

pytestmark = pytest.mark.slow


def coin_flips(share, seed):
    rng = np.random.RandomState(10_000 + seed)
    y = np.zeros(N, dtype=int)
    y[rng.permutation(N)[: round(share * N)]] = 1
    return rng.normal(size=(N, 5)), y


def leaky_scores(model, X, y):
    """Out-of-bag votes under the weights that were learned on these very rows."""
    votes = np.stack([2 * voter.predict(X) - 1 for voter in model.estimators_], axis=1)
    draws = BootstrapSampling.plan(y, max_samples=0.2, seed=model.seed_)
    unseen = np.stack([draws.out_of_bag(k) for k in range(VOTERS)], axis=1)
    weights = unseen * model.weights_
    return (weights * votes).sum(axis=1) / weights.sum(axis=1)


def auc(y, score):
    scored = ~np.isnan(score)
    return roc_auc_score(y[scored], score[scored])


@pytest.fixture(scope="module", params=[0.05, 0.5], ids=["5 % positives", "balanced"])
def aucs(request):
    """Honest and leaky AUC for each seed, (seeds, 2)."""
    found = []
    for seed in range(SEEDS):
        X, y = coin_flips(request.param, seed)
        model = DAMVIClassifier(n_estimators=VOTERS, random_state=seed).fit(X, y)
        scores = model.oob_decision_function_, leaky_scores(model, X, y)
        found.append([auc(y, score) for score in scores])
    return np.array(found)


def test_the_out_of_bag_score_is_at_chance(aucs):
    honest = aucs[:, 0]
    assert abs(honest.mean() - 0.5) <= 2 * honest.std(ddof=1) / np.sqrt(SEEDS)


@pytest.mark.parametrize("aucs", [0.05], indirect=True)
def test_weights_learned_on_the_rows_they_judge_flatter_themselves(aucs):
    honest, leaky = aucs.T
    gain = leaky - honest
    assert gain.mean() > 5 * gain.std(ddof=1) / np.sqrt(SEEDS)


def test_very_many_values_and_free_text_tell_nothing_of_coin_flips():
    """A slice of benchmarks/coin_flips.py: the score out of sample is at chance."""
    words = np.array(["oil", "leak", "fine", "dry", "pump", "hot", "belt", "loose", "worn"])
    scores = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"who": [f"customer {k}" for k in rng.integers(0, 1200, 1500)]})
        X["note"] = [" ".join(rng.choice(words, 6)) for _ in range(1500)]
        y = rng.random(1500) < 0.1
        table = TableEncoder().fit(X)
        assert [column.kind for column in table.schema_.columns] == ["levels", "text"]
        model = DAMVIClassifier(n_estimators=30, random_state=seed)
        vote = model.fit(table.transform(X), y).decision_.out_of_sample_vote
        scores.append(auc(y, vote))
    # Each has a standard error of .025.
    assert abs(np.mean(scores) - 0.5) < 0.03
