"""The oracle: the paper's Algorithm 1 in plain numpy, on the estimator's own draws."""

import numpy as np
import pytest
from scipy.optimize import minimize, nnls
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier
from damvi.voters import BootstrapSampling

SEEDS = [0, 1, 2, 3]


class Algorithm1:
    """A transcription, step by step. ``bits`` rounds the examples' weights before Z."""

    def __init__(self, n_voters, draws, bits=None):
        self.n_voters, self.draws, self.bits = n_voters, draws, bits

    def fit(self, X, signs):
        n, K = len(signs), self.n_voters
        self.H = []
        D = np.full(n, 1 / n)

        # Steps 1 to 4: voters from bootstrap samples.
        for k in range(K):
            rows = np.repeat(np.arange(n), self.draws.counts(k))
            tree = DecisionTreeClassifier(random_state=self.draws.random_state(k))
            unique, times = np.unique(rows, return_counts=True)
            self.H.append(tree.fit(X[unique], signs[unique], sample_weight=times))

        # Steps 5 and 6: uniform weights.
        Q = np.full(K, 1 / K)

        # Step 7: the distribution over the learning sample.
        h = np.array([voter.predict(X) for voter in self.H], dtype=float)
        for i in range(n):
            if signs[i] == 1:
                D[i] = D[i] * np.exp(-signs[i] * sum(Q[k] * h[k, i] for k in range(K)))
        if self.bits is not None:
            D = np.rint(D * n * 2.0**self.bits)
        self.D = D / D.sum()

        # Step 8: the C-bound, by least squares on the rows themselves.
        root = np.sqrt(self.D)
        w, _ = nnls(root[:, None] * h.T, root * signs)
        self.Q, self.h, self.signs = w / w.sum(), h, signs
        return self

    def objective(self, Q):
        """What step 8 maximises, word by word."""
        errs = self.h != self.signs
        accuracy = 1 - 2 * np.sum(self.D * (Q @ errs))
        agree = self.h[:, None, :] == self.h[None, :, :]
        disagreement = np.einsum("i,kji,k,j->", self.D, ~agree, Q, Q)
        return accuracy**2 / (1 - 2 * disagreement)

    def vote(self, X):
        return sum(q * voter.predict(X) for q, voter in zip(self.Q, self.H, strict=True))


@pytest.fixture(scope="module", params=SEEDS)
def trained(request, table):
    X, y = table
    model = DAMVIClassifier(
        DecisionTreeClassifier(), n_estimators=30, random_state=request.param
    ).fit(X, y)
    signs = np.where(y == 1, 1, -1)
    draws = BootstrapSampling.plan(y, max_samples=0.2, seed=model.seed_)
    return model, X, signs, draws


@pytest.mark.parametrize(("bits", "tolerance"), [(None, 1e-7), (30, 1e-10)])
def test_the_estimator_is_the_papers_algorithm(trained, fresh, bits, tolerance):
    model, X, signs, draws = trained
    oracle = Algorithm1(30, draws, bits).fit(X, signs)
    c_bound = 1 - oracle.objective(oracle.Q)
    assert 0 < c_bound < 1
    assert model.c_bound_ == pytest.approx(c_bound, abs=tolerance)
    assert 1 - oracle.objective(model.weights_) == pytest.approx(c_bound, abs=tolerance)
    np.testing.assert_allclose(model.weights_, oracle.Q, atol=tolerance**0.5)
    decided = np.where(model.predict(fresh) == 1, 1, -1)
    expected = np.where(oracle.vote(fresh) > 0, 1, -1)
    np.testing.assert_array_equal(decided, expected)
    assert len(set(decided)) == 2
    np.testing.assert_allclose(model.vote(fresh), oracle.vote(fresh), atol=tolerance**0.5)


def test_the_fitted_risks_are_those_of_the_reweighted_sample(trained):
    model, X, signs, draws = trained
    oracle = Algorithm1(30, draws, bits=30).fit(X, signs)
    errs = oracle.h != signs
    assert model.gibbs_risk_ == pytest.approx(np.sum(oracle.D * (model.weights_ @ errs)))
    mean = model.weights_ @ oracle.h
    assert model.disagreement_ == pytest.approx(np.sum(oracle.D * (1 - mean**2) / 2))


def test_slsqp_as_in_the_paper_is_never_better(trained):
    model, X, signs, draws = trained
    oracle = Algorithm1(30, draws, bits=30).fit(X, signs)
    agree = oracle.h * oracle.D @ oracle.h.T
    correct = oracle.h @ (oracle.D * signs)
    papers = minimize(
        lambda Q: -((correct @ Q) ** 2) / (Q @ agree @ Q),
        np.full(30, 1 / 30),
        method="SLSQP",
        bounds=[(0, 1)] * 30,
        constraints={"type": "eq", "fun": lambda Q: Q.sum() - 1},
    )
    Q = np.clip(papers.x, 0, None) / np.clip(papers.x, 0, None).sum()
    assert model.c_bound_ <= 1 - oracle.objective(Q) + 1e-12
    assert model.c_bound_ <= 1 - oracle.objective(np.full(30, 1 / 30)) + 1e-12


def test_without_reweighting_the_sample_is_taken_as_it_is(table):
    X, y = table
    model = DAMVIClassifier(
        DecisionTreeClassifier(), n_estimators=20, random_state=0, reweight=False
    ).fit(X, y)
    signs = np.where(y == 1, 1, -1)
    h = np.array([2 * voter.predict(X) - 1 for voter in model.estimators_])
    _, norm = nnls(h.T / np.sqrt(len(y)), signs / np.sqrt(len(y)))
    assert model.c_bound_ == pytest.approx(norm**2, abs=1e-10)
    leaning = DAMVIClassifier(
        DecisionTreeClassifier(), n_estimators=20, random_state=0
    ).fit(X, y)
    assert leaning.c_bound_ > model.c_bound_ + 1e-3
