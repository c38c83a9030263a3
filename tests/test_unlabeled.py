"""Unlabelled rows: the moments they refine, the fits that take them, what is refused."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier, DAMVIVotingClassifier, Unlabeled
from damvi.certificate import certify
from damvi.folds import deal_folds
from damvi.unlabeled import UnlabeledMoments, split_unlabeled
from damvi.votes import Votes
from damvi.weighting import Settings

from .conftest import imbalanced, weigh

POOL = [("bayes", GaussianNB()), ("linear", LogisticRegression())]


# The moments of the negatives, against sums written out.


def votes_on(targets, seed, n_voters=5, soft=False, skill=0.8):
    rng = np.random.default_rng(seed)
    signs = 2 * targets[:, None] - 1
    votes = np.tanh(skill * signs + rng.normal(size=(len(targets), n_voters)))
    votes = votes if soft else np.where(votes > 0, 1, -1)
    return np.asfortranarray(votes, dtype=np.float32 if soft else np.int8)


def targets_of(n, seed, rate=0.2):
    return (np.random.default_rng(seed).random(n) < rate).astype(int)


def some_votes(n=60, seed=0, *, soft=False, masked=False, weighted=False, weight=1.0):
    rng, targets = np.random.default_rng([seed, 1]), targets_of(n, seed)
    votes = votes_on(targets, seed, soft=soft)
    outside = rng.random((votes.shape[1], n)) < 0.7
    return Votes(
        votes,
        targets,
        deal_folds(targets, 0, 3),
        sample_weight=np.ldexp(rng.integers(1, 9, n), -3) if weighted else None,
        out_of_bag=np.packbits(outside, axis=1) if masked else None,
        only_out_of_bag=masked,
        class_weight=np.array([1.0, weight]),
    )


def unlabeled_moments(n=500, seed=7, soft=False, rate=None):
    return UnlabeledMoments.of([votes_on(targets_of(n, seed), seed, soft=soft)], rate)


def refined(votes, unlabeled, weight):
    first, *others = replace(votes, unlabeled=unlabeled).moments_by_fold(1.0, weight)
    return sum(others, start=first)


def slow_moments(given, unlabeled, strength, weight):
    """The refined moments, before the projection, pair by pair and row by row."""
    n, n_voters = given.votes.shape
    votes, positive = given.votes.astype(float), given.targets == 1
    counted = np.ones((n, n_voters), bool) if given.counted is None else given.counted
    base = np.ones(n) if given.sample_weight is None else given.sample_weight
    D = base.copy()
    for i in np.flatnonzero(positive):
        plain = votes[i, counted[i]].mean() if counted[i].any() else 0.0
        D[i] *= given.class_weight[1] * np.exp(-strength * plain)
    p = unlabeled.positive_rate
    if p is None:
        p = base[positive].sum() / base.sum()
    signs = 2 * given.targets - 1
    m, M = np.zeros(n_voters), np.zeros((n_voters, n_voters))
    for j in range(n_voters):
        own = counted[:, j]
        m[j] = (D * signs * votes[:, j])[own].sum() / D[own].sum()
        for k in range(n_voters):
            rows = counted[:, j] & counted[:, k]
            up, down = rows & positive, rows & ~positive
            pair = votes[:, j] * votes[:, k]
            natural = (base * pair)[up].sum() / base[up].sum()
            negatives = (unlabeled.M[j, k] - p * natural) / (1 - p)
            labelled = (base * pair)[down].sum() / base[down].sum()
            mixed = (1 - weight) * labelled + weight * negatives
            total = base[down].sum() * mixed + (D * pair)[up].sum()
            M[j, k] = total / (base[down].sum() + D[up].sum())
    return m, M


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("rate", [None, 0.1])
def test_the_refined_moments_are_those_of_the_formula(soft, masked, rate):
    votes = some_votes(120, soft=soft, masked=masked, weighted=True, weight=2.0)
    unlabeled = unlabeled_moments(soft=soft, rate=rate)
    found = refined(votes, unlabeled, 0.4)
    assert found.settled_weight == 0.4
    m, M = slow_moments(votes, unlabeled, 1.0, 0.4)
    assert np.linalg.eigvalsh(M)[0] > 1e-3  # so that the projection changes nothing
    np.testing.assert_allclose(found.moments().normalised()[0], m, atol=1e-8)
    np.testing.assert_allclose(found.moments().normalised()[1], M, atol=1e-7)


@pytest.mark.parametrize("soft", [False, True])
def test_labelled_rows_taken_for_unlabelled_ones_say_nothing_new(soft):
    votes = some_votes(200, soft=soft)
    found = refined(votes, UnlabeledMoments.of([votes.votes]), 0.7)
    first, *others = votes.moments_by_fold(1.0)
    plain = sum(others, start=first)
    M, known = found.negatives()
    assert known.all()
    np.testing.assert_allclose(M, plain.negatives.M / plain.negatives.total, atol=1e-12)
    for ours, theirs in zip(
        found.moments().normalised(), plain.moments().normalised(), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_without_a_weight_the_moments_are_the_labelled_ones():
    votes = some_votes()
    one, other = weigh(votes), weigh(replace(votes, unlabeled=unlabeled_moments()))
    np.testing.assert_array_equal(one.weights, other.weights)
    np.testing.assert_array_equal(one.out_of_sample_vote, other.out_of_sample_vote)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_moments_are_positive_semi_definite_and_keep_what_they_promise(
    masked, fit_intercept
):
    lowered = 0
    for seed in range(30):
        votes = some_votes(25, seed, masked=masked)
        if votes.targets.sum() < 3:
            continue
        # Votes of other voters altogether, and a rate far from the truth.
        unlabeled = unlabeled_moments(40, seed + 100, rate=0.6)
        found = refined(votes, unlabeled, 0.9)
        lowered += found.settled_weight < 0.9
        moments = found.moments()
        assert np.linalg.eigvalsh(moments.normalised()[1])[0] >= -1e-12
        how = Settings(unlabeled_weight=0.9, fit_intercept=fit_intercept)
        Q = weigh(replace(votes, unlabeled=unlabeled), how).weights
        assert Q.min() >= 0
        assert Q.sum() == pytest.approx(1)
        if found.settled_weight > 0 and not fit_intercept:
            assert moments.mu1(Q) ** 2 <= moments.mu2(Q) * (1 + 1e-9)
    assert lowered > 0


def test_blocks_add_up_and_voters_can_be_taken():
    votes = votes_on(targets_of(100, 3), 3)
    once = UnlabeledMoments.of([votes], 0.3)
    parts = UnlabeledMoments.of([votes[:33], votes[33:]], 0.3)
    np.testing.assert_array_equal(once.M, parts.M)
    assert once.M[1, 4] == pytest.approx((votes[:, 1] * votes[:, 4]).mean())
    some = once.take(np.array([1, 4]))
    np.testing.assert_array_equal(some.M, once.M[1::3, 1::3])
    assert some.positive_rate == 0.3


@pytest.mark.parametrize("y", [[0, 1], [0, 1, 1], [1, 0, 0]])
@pytest.mark.parametrize("settings", [{}, {"fit_intercept": True, "shrinkage": 0.5}])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_fold_whose_others_have_no_negatives_or_no_rows(y, settings):
    X = np.array([[-0.2, 1.0], [0.6, 1.0], [0.3, 1.0]])[: len(y)]
    model = DAMVIClassifier(
        n_estimators=3, unlabeled_weight=0.5, random_state=0, **settings
    )
    model.fit(X, y, X_unlabeled=X[:1])
    assert len(model.oob_decision_function_) == len(y)
    assert np.isfinite(model.weights_).all()


def test_a_pair_without_a_shared_positive_keeps_its_labelled_moments():
    votes = some_votes(80, masked=True)
    outside = votes.counted.copy()
    outside[votes.targets == 1, 0] = False  # voter 0 was trained on all positives
    votes = replace(votes, out_of_bag=np.packbits(outside.T, axis=1))
    unlabeled = unlabeled_moments()
    _, known = refined(votes, unlabeled, 0.5).negatives()
    assert not known[0].any()
    assert known[1:, 1:].all()
    found = weigh(replace(votes, unlabeled=unlabeled), Settings(unlabeled_weight=0.5))
    assert np.isfinite(found.weights).all()


# Fits.


def model(estimator=None, **options):
    options = {"n_estimators": 12, "random_state": 0, **options}
    return DAMVIClassifier(estimator, **options)


def pool(**options):
    return DAMVIVotingClassifier(POOL, random_state=0, **options)


KINDS = {
    "trees": model(votes="oob"),
    "any": model(DecisionTreeClassifier(), votes="oob"),
    "pool": pool(),
}


def test_left_alone_it_is_as_if_there_were_none(table, fresh):
    plain = model().fit(*table)
    with pytest.warns(UserWarning, match="X_unlabeled is ignored") as told:
        default = model().fit(*table, X_unlabeled=fresh)
    assert told[0].filename == __file__
    np.testing.assert_array_equal(plain.weights_, default.weights_)
    np.testing.assert_array_equal(plain.row_hashes_, default.row_hashes_)
    with pytest.warns(UserWarning, match="X_unlabeled is ignored") as told:
        pool().fit(*table, X_unlabeled=fresh)
    assert told[0].filename == __file__


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_with_weight_0_it_is_the_supervised_fit_out_of_sample(table, fresh, kind):
    plain = clone(kind).fit(*table)
    refined = clone(kind).set_params(unlabeled_weight=0.9)
    refined.fit(*table, X_unlabeled=fresh)
    assert (plain.weights_ != refined.weights_).any()
    refined.reweigh(unlabeled_weight=0.0)
    np.testing.assert_array_equal(plain.weights_, refined.weights_)
    np.testing.assert_array_equal(plain.vote(fresh), refined.vote(fresh))
    for name in ("c_bound_", "gibbs_risk_", "disagreement_", "threshold_"):
        assert getattr(plain, name) == getattr(refined, name)
    np.testing.assert_array_equal(
        plain.oob_decision_function_, refined.oob_decision_function_
    )


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_only_the_second_moments_of_the_votes_are_kept(table, fresh, kind):
    fitted = clone(kind).set_params(unlabeled_weight=0.5)
    fitted.fit(*table, X_unlabeled=fresh)
    votes = fitted.cast_votes(fresh).astype(float)
    np.testing.assert_allclose(
        fitted.votes_.unlabeled.M, votes.T @ votes / len(fresh), atol=1e-9
    )


def test_blocks_of_unlabelled_rows_make_no_difference(table, fresh, monkeypatch):
    once = model(unlabeled_weight=0.5).fit(*table, X_unlabeled=fresh)
    monkeypatch.setattr("damvi.votes.UNLABELED_ROWS", 64)
    parts = model(unlabeled_weight=0.5).fit(*table, X_unlabeled=fresh)
    np.testing.assert_array_equal(once.votes_.unlabeled.M, parts.votes_.unlabeled.M)
    np.testing.assert_array_equal(once.weights_, parts.weights_)


@pytest.mark.parametrize("bootstrap", [True, False, "poisson"])
def test_a_model_that_works(table, fresh, bootstrap):
    X, y = table
    weights = np.where(np.arange(len(y)) % 7 == 0, 0.0, 1.0)
    fitted = model(unlabeled_weight=0.5, bootstrap=bootstrap, threshold="f1")
    fitted.fit(X, y, sample_weight=weights, X_unlabeled=fresh)
    again = clone(fitted).set_params(n_jobs=2)
    again.fit(X, y, sample_weight=weights, X_unlabeled=Unlabeled(fresh))
    np.testing.assert_array_equal(fitted.vote(fresh), again.vote(fresh))
    assert len(fitted.estimators_) == 12
    rows, labels = imbalanced(400, seed=2)
    assert roc_auc_score(labels, fitted.vote(rows)) > 0.7
    assert fitted.prune(3).weights_.shape[0] <= 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        certify(fitted, rows, labels)
    # No certificate on rows that had a part in the weights, labelled or not.
    with pytest.raises(ValueError, match="they include training rows"):
        certify(fitted, fresh, np.arange(len(fresh)) % 2)


def test_another_rate_of_positives_gives_other_weights(table, fresh):
    found = [
        model(unlabeled_weight=0.9)
        .fit(*table, X_unlabeled=Unlabeled(fresh, positive_rate=rate))
        .weights_
        for rate in (None, 0.02, 0.4)
    ]
    assert (found[0] != found[1]).any()
    assert (found[1] != found[2]).any()


def test_tables_with_categories_and_gaps(table, fresh):
    X, y = table
    frame = pd.DataFrame(X.copy(), columns=list("abcd"))
    more = pd.DataFrame(fresh.copy(), columns=list("abcd"))
    for one in (frame, more):
        one["e"] = pd.Categorical(np.where(one["a"] > 0, "up", "down"))
        one.loc[::9, "b"] = np.nan
    fitted = model(unlabeled_weight=0.5).fit(frame, y, X_unlabeled=more)
    assert roc_auc_score(y, fitted.vote(frame)) > 0.8


def test_warm_start_goes_on_with_unlabelled_rows(table, fresh):
    warm = model(warm_start=True, n_estimators=6, unlabeled_weight=0.5)
    warm.fit(*table, X_unlabeled=fresh)
    warm.set_params(n_estimators=12).fit(*table, X_unlabeled=fresh)
    cold = model(unlabeled_weight=0.5).fit(*table, X_unlabeled=fresh)
    np.testing.assert_array_equal(warm.weights_, cold.weights_)


def test_coin_flips_stay_at_chance():
    found = []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        y = (np.arange(300) < 45).astype(int)
        X, fresh = rng.normal(size=(300, 4)), rng.normal(size=(600, 4))
        fitted = model(unlabeled_weight=0.5, n_estimators=40, random_state=seed)
        fitted.fit(X, y, X_unlabeled=fresh)
        score = fitted.oob_decision_function_
        known = ~np.isnan(score)
        found.append(roc_auc_score(y[known], score[known]))
    error = np.std(found, ddof=1) / 4
    assert error < 0.02
    assert abs(np.mean(found) - 0.5) < 2.5 * error


def test_unlabelled_rows_are_for_two_classes_so_far(table, fresh):
    X, y = table
    three = np.arange(len(y)) % 3
    with pytest.warns(UserWarning, match="X_unlabeled is ignored"):
        model().fit(X, three, X_unlabeled=fresh)
    for one in (model(unlabeled_weight=0.5), pool(unlabeled_weight=0.5)):
        with pytest.raises(ValueError, match=r"two classes only, but y has 3.*y == 0"):
            one.fit(X, three, X_unlabeled=fresh)


def test_one_positive_will_do(table, fresh):
    X, y = table
    some = np.append(np.flatnonzero(y == 0), np.flatnonzero(y == 1)[0])
    fitted = model(unlabeled_weight=0.5, stratified=True)
    fitted.fit(X[some], y[some], X_unlabeled=fresh)
    assert fitted.weights_.sum() == pytest.approx(1)


# Tables: what is refused, and how they come apart.


def frame(X, names="abcd"):
    return pd.DataFrame(X, columns=list(names))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda U: U[:0], "X_unlabeled has 0 rows; omit it"),
        (lambda U: [], "X_unlabeled has 0 rows"),
        (
            lambda U: "more.csv",
            "X_unlabeled is a str, but must be a table; .*read it first",
        ),
        (lambda U: U[:, :3], r"X_unlabeled does not match X: X has 3 features.*4"),
        (lambda U: U[:300], r"X_unlabeled has 300 rows, as many as X.*damvi.Unlabeled"),
        (lambda U: Unlabeled(U[:0]), "X_unlabeled has 0 rows"),
        (lambda U: np.where(U > 2, np.inf, U), r"X_unlabeled does not match X.*infinity"),
    ],
)
def test_bad_unlabelled_rows(table, fresh, given, message):
    for one in (model(), model(unlabeled_weight=0.5), pool(unlabeled_weight=0.5)):
        with pytest.raises(ValueError, match=message):
            one.fit(*table, X_unlabeled=given(fresh))


@pytest.mark.parametrize("estimator", [None, LogisticRegression()])
def test_other_columns_are_named(table, fresh, estimator):
    X, y = table
    with pytest.raises(ValueError, match=r"(?s)does not match X.*unseen at fit.*- e"):
        model(estimator).fit(frame(X), y, X_unlabeled=frame(fresh, "abce"))
    with pytest.raises(ValueError, match=r"(?s)does not match X.*missing.*- d"):
        model(estimator).fit(frame(X), y, X_unlabeled=frame(fresh[:, :3], "abc"))
    if estimator is not None:
        with pytest.raises(ValueError, match="DataFrame, but X_unlabeled is a ndarray"):
            model(estimator).fit(frame(X), y, X_unlabeled=fresh)


@pytest.mark.parametrize("rate", [0.0, 1, -0.5])
def test_a_rate_that_is_no_share_is_named(fresh, rate):
    with pytest.raises(ValueError, match=f"positive_rate={rate} must be between 0 and 1"):
        Unlabeled(fresh, positive_rate=rate)


def test_rows_without_a_label_are_told_where_to_go(table):
    X, y = table
    gaps = np.where(np.arange(len(y)) % 3 == 1, np.nan, y)
    with pytest.raises(
        ValueError, match=r"NaN or None.* in 100 of 300 rows.*first in row 1;.*split_unlab"
    ):
        model().fit(X, gaps)
    for empty in ([None] * 300, np.full(300, np.nan), pd.Series([pd.NA] * 300)):
        with pytest.raises(ValueError, match=r"all 300 values of y are missing"):
            pool().fit(X, empty)


@pytest.mark.parametrize(
    "labels",
    [
        lambda y: np.where(y < 0, np.nan, y.astype(float)),
        lambda y: [None if label < 0 else label for label in y.tolist()],
        lambda y: pd.Series(y).astype("Int64").where(y >= 0),
        lambda y: pl.Series([None if label < 0 else label for label in y.tolist()]),
        lambda y: [None if label < 0 else "ny"[label] for label in y.tolist()],
    ],
)
def test_labelled_and_unlabelled_rows_come_apart(table, labels):
    X, y = table
    y = np.where(np.arange(len(y)) % 3 == 1, -1, y)
    rows, known, others = split_unlabeled(X, labels(y))
    np.testing.assert_array_equal(rows, X[y >= 0])
    np.testing.assert_array_equal(others.X, X[y < 0])
    as_text = known.dtype.kind == "U"
    expected = np.where(y[y >= 0] == 1, "y", "n") if as_text else y[y >= 0]
    np.testing.assert_array_equal(known, expected)
    fitted = model(unlabeled_weight=0.5).fit(rows, known, X_unlabeled=others)
    assert set(fitted.predict(X)) <= set(known)
    assert split_unlabeled(rows, known)[2] is None


def test_what_cannot_be_split_is_not_lost(table):
    X, y = table
    with pytest.raises(ValueError, match="X has 300 rows, but y has 20"):
        split_unlabeled(X, y[:20])
    with pytest.raises(ValueError, match=r"all 300 values of y are missing"):
        split_unlabeled(X, [None] * 300)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


class Watched(DAMVIClassifier):
    """Notes the sizes of what it was given."""

    def fit(self, X, y, sample_weight=None, X_unlabeled=None):
        super().fit(X, y, sample_weight, X_unlabeled)
        self.sizes_ = len(X), X_unlabeled.X.shape[0]
        return self


@pytest.mark.usefixtures("routing")
def test_a_search_leaves_as_many_unlabelled_rows_as_labelled_ones_whole(table, fresh):
    X, y = table
    for given in (fresh[:300], sparse.csr_matrix(fresh[:300]), frame(fresh[:300])):
        asks = Watched(n_estimators=5, unlabeled_weight=0.5, random_state=0)
        asks.set_fit_request(X_unlabeled=True)
        rows = frame(X) if hasattr(given, "columns") else X
        grid = {"unlabeled_weight": [0.1, 0.5]}
        search = GridSearchCV(asks, grid, cv=2, error_score="raise")
        search.fit(rows, y, X_unlabeled=Unlabeled(given))
        assert search.best_estimator_.sizes_ == (300, 300)
        found = cross_validate(
            asks,
            rows,
            y,
            cv=2,
            params={"X_unlabeled": Unlabeled(given)},
            return_estimator=True,
            error_score="raise",
        )
        assert [one.sizes_ for one in found["estimator"]] == [(150, 300), (150, 300)]


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("kind", [model(n_estimators=5), pool(cv=2)], ids=["trees", "pool"])
def test_a_table_that_a_search_would_cut_is_an_error_and_not_half_a_table(
    table, fresh, kind
):
    asks = clone(kind).set_params(unlabeled_weight=0.5).set_fit_request(X_unlabeled=True)
    grid = {"unlabeled_weight": [0.1, 0.5]}
    search = GridSearchCV(asks, grid, cv=2, error_score="raise")
    with pytest.raises(ValueError, match=r"150 rows, as many as X.*damvi.Unlabeled"):
        search.fit(*table, X_unlabeled=fresh[:300])
    search.fit(*table, X_unlabeled=fresh)  # of another length, it is left alone


def test_the_wrapper_has_nothing_to_cut_it_by(fresh):
    wrapped = pickle.loads(pickle.dumps(Unlabeled(fresh, positive_rate=0.1)))
    np.testing.assert_array_equal(wrapped.X, fresh)
    assert wrapped.positive_rate == 0.1
    assert repr(wrapped) == "<Unlabeled ndarray of 400 rows>"
    for name in ("shape", "__len__", "__array__", "__getitem__"):
        assert not hasattr(wrapped, name)


def test_a_weight_without_votes_on_unlabelled_rows_is_refused(table):
    fitted = model().fit(*table)
    before = fitted.c_bound_
    with pytest.raises(ValueError, match="fit again with X_unlabeled"):
        fitted.reweigh(unlabeled_weight=0.2)
    assert (fitted.unlabeled_weight, fitted.c_bound_) == (0.0, before)
