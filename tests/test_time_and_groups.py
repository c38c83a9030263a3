"""No row is judged by voters or weights that know it, its group, or what came later."""

import warnings
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from damvi import DAMVIClassifier, DAMVIVotingClassifier, forward_splits
from damvi.voters import BootstrapSampling, GroupSampling, PoissonSampling

POOL = [
    ("linear", make_pipeline(StandardScaler(), LogisticRegression())),
    ("bayes", GaussianNB()),
]


class Witness(ClassifierMixin, BaseEstimator):
    """Remembers the numbers of the rows that it saw (column 0), and which it judges."""

    asked: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.seen_ = np.unique(X[:, 0]).astype(int)
        self.inner_ = GaussianNB().fit(X[:, 1:], y)
        return self

    def predict_proba(self, X):
        type(self).asked.append((self.seen_, X[:, 0].astype(int)))
        return self.inner_.predict_proba(X[:, 1:])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def drifting(n=400, rate=0.2, seed=0, n_groups=60):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rate).astype(int)
    X = np.column_stack([np.arange(n), rng.normal(size=(n, 3)) + y[:, None]])
    return X, y, rng.integers(0, n_groups, n), rng.permutation(n) // 3


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 2**16), st.booleans(), st.sampled_from(["time", "split", "folds"]))
def test_no_voter_of_a_pool_judges_what_it_knows(seed, grouped, how):
    X, y, groups, times = drifting(seed=seed)
    if how == "split":
        times = np.arange(len(y))
    cv = {"time": None, "split": TimeSeriesSplit(3), "folds": KFold(3)}[how]
    cv = forward_splits(times, y, n_splits=3) if cv is None else cv
    Witness.asked = []
    more = {"groups": groups} if grouped else {}
    model = DAMVIVotingClassifier([("w", Witness()), *POOL], cv=cv, random_state=0)
    model.fit(X, y, **more)
    # The model of all rows is tried on a few of them, and their votes are thrown away.
    asked = [(seen, judged) for seen, judged in Witness.asked if len(seen) < len(y)]
    assert len(asked) == 3
    for seen, judged in asked:
        assert not np.isin(judged, seen).any()
        if grouped:
            assert not np.isin(groups[judged], groups[seen]).any()
        if how != "folds":
            assert times[seen].max() < times[judged].min()
    vote = model.decision_.out_of_sample_vote
    judged = np.sort(np.concatenate([judged for _, judged in asked]))
    np.testing.assert_array_equal(np.flatnonzero(~np.isnan(vote)), judged)
    assert (model.votes_.folds[np.isnan(vote)] == -1).all()
    assert np.isnan(model.oob_decision_function_[np.isnan(vote)]).all()


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**16), st.booleans(), st.booleans())
def test_bagged_voters_are_fitted_anew_for_each_window(seed, grouped, poisson):
    X, y, groups, times = drifting(seed=seed)
    cv = forward_splits(times, y, n_splits=2)
    Witness.asked = []
    more = {"groups": groups} if grouped else {}
    bootstrap = "poisson" if poisson else True
    model = DAMVIClassifier(
        Witness(),
        n_estimators=4,
        bootstrap=bootstrap,
        stratified=True,
        cv=cv,
        threshold="f1",
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # four voters may be no better than a coin
        model.fit(X, y, **more)
    vote = model.decision_.out_of_sample_vote
    for window, (train, test) in enumerate(cv):
        assert not np.isnan(vote[test]).any()
        assert (model.decision_.weighting.folds[test] == window).all()
        asked = [seen for seen, judged in Witness.asked if np.array_equal(judged, test)]
        assert asked  # voters without a weight are not asked
        for seen in asked:
            assert np.isin(seen, train).all()
            assert times[seen].max() < times[test].min()
            if grouped:
                assert not np.isin(groups[test], groups[seen]).any()
    unjudged = np.setdiff1d(np.arange(len(y)), np.concatenate([test for _, test in cv]))
    assert np.isnan(vote[unjudged]).all()


@settings(deadline=None, max_examples=20)
@given(
    st.integers(0, 2**16),
    st.sampled_from([BootstrapSampling.plan, PoissonSampling.plan]),
    st.booleans(),
    st.booleans(),
)
def test_whole_groups_are_drawn(seed, plan, stratified, weighted):
    _, y, groups, _ = drifting(seed=seed)
    weights = np.random.default_rng(seed).random(len(y)) if weighted else None
    sampling = GroupSampling.plan(
        y,
        groups,
        plan,
        max_samples=0.3,
        seed=seed,
        stratified=stratified,
        sample_weight=weights,
    )
    for voter in range(3):
        seen = sampling.counts(voter) > 0
        unseen = sampling.out_of_bag(voter)
        assert not (seen & unseen).any()
        assert not np.isin(groups[seen], groups[unseen]).any()
    np.testing.assert_array_equal(sampling.counts(1), sampling.counts(1))
    if weighted:
        drawn = np.mean([sampling.counts(voter) for voter in range(300)], axis=0)
        assert abs(np.polyfit(weights / weights.mean(), drawn, 1)[0] / 0.3 - 1) < 0.35


@pytest.mark.parametrize("bootstrap", [True, False, "poisson"])
def test_a_row_is_judged_by_voters_and_weights_that_know_none_of_its_group(bootstrap):
    X, y, groups, _ = drifting()
    model = DAMVIClassifier(n_estimators=20, bootstrap=bootstrap, random_state=0)
    model.fit(X, y, groups=groups)
    votes = model.votes_
    for fold in range(votes.n_folds):
        here = votes.folds == fold
        assert not np.isin(groups[here], groups[~here]).any()
    unseen = np.unpackbits(votes.out_of_bag, axis=1, count=len(y)).astype(bool)
    for voter in unseen:
        assert not np.isin(groups[voter], groups[~voter]).any()
    assert not np.isnan(model.oob_decision_function_).any()


def test_groups_tell_what_a_row_of_its_group_would_give_away():
    """Rows of a group are copies, and labels are coin flips by group."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(150), 8)
    X, y = rng.normal(size=(150, 5))[groups], (rng.random(150) < 0.3)[groups]
    found = {}
    for more in ({}, {"groups": groups}):
        model = DAMVIClassifier(n_estimators=60, random_state=0).fit(X, y, **more)
        vote = model.decision_.out_of_sample_vote
        up = y & ~np.isnan(vote)
        found[bool(more)] = np.mean(vote[up][:, None] > vote[~y & ~np.isnan(vote)])
    assert found[False] > 0.9
    assert abs(found[True] - 0.5) < 0.12


@pytest.mark.parametrize("voting", ["soft", "hard"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_unjudged_rows_weigh_nothing(voting, n_classes):
    """Labels of the first stretch can be anything, as far as weights are concerned."""
    X, y, *_ = drifting(n=300)
    y = y if n_classes == 2 else y + (X[:, 1] > 1.5)
    settings = {"voting": voting, "random_state": 0, "cv": "prefit"}
    pool = [(name, clone(voter).fit(X, y)) for name, voter in POOL]
    model = DAMVIVotingClassifier(pool, **settings).fit(X, y)
    votes = model.votes_
    folds = np.where(np.arange(300) < 100, -1, votes.folds)
    cut = replace(votes, folds=folds)
    kept = replace(
        votes,
        votes=votes.votes[100:],
        targets=votes.targets[100:],
        folds=votes.folds[100:],
    )
    for one, other in zip(cut.moments_by_fold(1.0), kept.moments_by_fold(1.0), strict=True):
        np.testing.assert_array_equal(one.moments().m, other.moments().m)
        np.testing.assert_array_equal(one.moments().M, other.moments().M)


def test_time_changes_no_vote_of_the_past():
    """What judges a window is the same, whatever comes after it (the first aside)."""
    X, y, *_ = drifting(n=600)
    cv = [(np.arange(120 * k), np.arange(120 * k, 120 * (k + 1))) for k in range(1, 5)]
    model = DAMVIVotingClassifier(POOL, cv=cv, random_state=0).fit(X, y)
    other = np.where(np.arange(600) < 480, y, 1 - y)
    changed = DAMVIVotingClassifier(POOL, cv=cv, random_state=0, pos_label=1).fit(X, other)
    votes = [one.decision_.out_of_sample_vote for one in (model, changed)]
    # The balance of classes is the table's, and the choice of the plain vote takes two
    # windows before: from the third on nothing may differ but that.
    second = slice(240, 480)
    assert np.corrcoef(votes[0][second], votes[1][second])[0, 1] > 0.97
    tuning = model.tuning_
    assert tuning is not None
    assert 0 <= tuning.honest_value <= 1
    assert model.choose("f1", reweight=(0, 1), shrinkage=(0, 0.1)).honest_value >= 0
    model.prune(1)
    assert np.isnan(model.oob_decision_function_[:120]).all()


def test_cv_of_bagged_voters_leaves_the_weights_alone():
    X, y, *_ = drifting(n=500)
    cv = TimeSeriesSplit(3)
    settings = {"n_estimators": 20, "threshold": "f1", "random_state": 0}
    plain = DAMVIClassifier(**settings).fit(X, y)
    model = DAMVIClassifier(**settings, cv=cv).fit(X, y)
    np.testing.assert_array_equal(plain.weights_, model.weights_)
    train, test = list(cv.split(X))[1]
    alone = DAMVIClassifier(**settings, pos_label=1).fit(X[train], y[train])
    vote = model.decision_.out_of_sample_vote
    np.testing.assert_array_equal(vote[test], alone.vote(X[test]))
    model.reweigh(threshold={"recall": 0.5})
    with pytest.raises(ValueError, match="cv=None to use out-of-bag votes"):
        model.reweigh(shrinkage=0.1)
    with pytest.raises(ValueError, match="Fit again"):
        model.choose()
    with pytest.raises(ValueError, match="Fit again"):
        model.prune(3)
    classes = y + (X[:, 1] > 1.5)
    many = DAMVIClassifier(n_estimators=10, cv=cv, random_state=0).fit(X, classes)
    assert many.oob_decision_function_.shape == (500, 3)
    assert np.isnan(many.oob_decision_function_[:125]).all()


def test_groups_are_metadata():
    X, y, groups, _ = drifting()
    bagged = DAMVIClassifier(n_estimators=5, random_state=0)
    pool = DAMVIVotingClassifier(POOL, cv=TimeSeriesSplit(3), random_state=0)
    for model in (bagged, pool):
        plain = clone(model).fit(X, y, groups=groups).decision_.out_of_sample_vote
        with sklearn.config_context(enable_metadata_routing=True):
            routed = clone(model).fit(X, y, groups=groups).decision_.out_of_sample_vote
        np.testing.assert_array_equal(plain, routed)
    with sklearn.config_context(enable_metadata_routing=True):
        clone(pool).set_params(cv=GroupKFold(3)).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="all rows are in one group"):
        clone(bagged).fit(X, y, groups=np.zeros(len(y)))
    with pytest.raises(ValueError, match="groups has 3 entries"):
        clone(bagged).fit(X, y, groups=[1, 2, 3])
    with pytest.raises(ValueError, match="banana"):
        clone(bagged).fit(X, y, banana=groups)


def test_files_keep_a_model_that_was_judged_in_time(tmp_path):
    from damvi import load, save

    X, y, *_ = drifting()
    splitter = PredefinedSplit(np.repeat([-1, 0, 1, 2], 100))
    for cv in (TimeSeriesSplit(3), list(splitter.split())):
        for model in (
            DAMVIClassifier(n_estimators=5, cv=cv, random_state=0),
            DAMVIVotingClassifier(POOL, cv=cv, random_state=0),
        ):
            save(model.fit(X, y), tmp_path / "model.damvi")
            loaded = load(tmp_path / "model.damvi")
            np.testing.assert_array_equal(loaded.vote(X), model.vote(X))
            kept = loaded.oob_decision_function_
            np.testing.assert_array_equal(kept, model.oob_decision_function_)
