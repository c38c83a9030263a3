"""FastTreeClassifier: scikit-learn's conventions, conversions, and the votes."""

import pickle

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier, export_text
from sklearn.utils.estimator_checks import parametrize_with_checks

from damvi import DAMVIClassifier, FastTreeClassifier


@pytest.fixture
def table():
    X, y = make_classification(700, 6, weights=[0.85], flip_y=0.05, random_state=0)
    return X.round(1), y


checks = parametrize_with_checks(
    [FastTreeClassifier(), FastTreeClassifier(max_features="sqrt", max_depth=5)]
).mark


# A list, since older releases of scikit-learn hand pytest a generator, which it deprecates.
@pytest.mark.slow
@pytest.mark.parametrize(checks.args[0], list(checks.args[1]), **checks.kwargs)
def test_scikit_learn_checks(estimator, check):
    if sklearn.__version__ < "1.7" and "sample_weight_equivalence" in str(check):
        pytest.xfail("1.6 makes the labels binary by their first, which a shuffle changes")
    check(estimator)


def test_it_fits_as_well_as_cart(table):
    X, y = table
    ours = FastTreeClassifier(random_state=0).fit(X, y)
    cart = DecisionTreeClassifier(random_state=0).fit(X, y)
    assert ours.score(X, y) == cart.score(X, y) == 1
    assert ours.get_n_leaves() == pytest.approx(cart.get_n_leaves(), rel=0.15)
    assert ours.feature_importances_ == pytest.approx(cart.feature_importances_, abs=0.1)
    assert ours.feature_importances_.sum() == pytest.approx(1)


def test_the_share_of_positives_in_a_leaf_is_its_probability(table):
    X, y = table
    stump = FastTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    for share in np.unique(stump.predict_proba(X)[:, 1]):
        leaf = stump.predict_proba(X)[:, 1] == share
        assert share == pytest.approx(y[leaf].mean())


def test_weights_count_like_repeated_rows(table):
    X, y = table
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    repeated = FastTreeClassifier(random_state=0).fit(
        np.repeat(X, counts, 0), np.repeat(y, counts)
    )
    weighted = FastTreeClassifier(random_state=0).fit(X, y, sample_weight=counts)
    np.testing.assert_array_equal(repeated.predict_proba(X), weighted.predict_proba(X))


@pytest.mark.parametrize("missing", [False, True])
def test_the_converted_tree_answers_the_same(table, missing):
    X, y = table
    X = X.astype(np.float32).astype(float)
    if missing:
        X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    tree = FastTreeClassifier(random_state=0, max_depth=6).fit(X, y)
    converted = tree.to_sklearn()
    new = np.vstack([X, X[::-1] + np.float32(0.03)])
    np.testing.assert_array_equal(tree.predict(new), converted.predict(new))
    np.testing.assert_allclose(tree.predict_proba(new), converted.predict_proba(new))
    np.testing.assert_allclose(
        converted.feature_importances_, tree.feature_importances_, atol=1e-12
    )
    assert converted.get_depth() == tree.get_depth()
    assert "class: 1" in export_text(converted)


def test_a_tree_on_categories_says_why_it_cannot_be_converted(table):
    X, y = table
    tree = FastTreeClassifier(categorical_features=[0], max_depth=3).fit(np.floor(X), y)
    with pytest.raises(ValueError, match="splits on categories"):
        tree.to_sklearn()


def test_views_of_the_voters_vote_as_the_ensemble_counts_them(table):
    X, y = table
    model = DAMVIClassifier(n_estimators=9, random_state=3).fit(X, y)
    by_hand = sum(
        weight * np.where(voter.predict(X) == 1, 1, -1)
        for voter, weight in zip(model.estimators_, model.weights_, strict=True)
    )
    np.testing.assert_array_equal(model.vote(X), by_hand.clip(-1, 1))
    assert all((voter.classes_ == [0, 1]).all() for voter in model.estimators_)


def test_a_voter_is_the_tree_grown_alone_on_its_draw(table):
    from damvi.voters import BootstrapSampling

    X, y = table
    model = DAMVIClassifier(n_estimators=5, max_samples=0.6, random_state=3).fit(X, y)
    draws = BootstrapSampling.plan(
        np.where(y == 1, 1, -1), max_samples=0.6, seed=model.seed_
    )
    for k, voter in enumerate(model.estimators_):
        in_bag = draws.counts(k) > 0
        # Few values, so that the shared bins are the draw's own; leaves are then pure.
        assert (voter.predict(X[in_bag]) == y[in_bag]).mean() > 0.99
        assert voter.get_n_leaves() > 5


def test_real_weights_reach_the_trees_without_a_bootstrap(table):
    X, y = table
    weights = np.random.default_rng(0).random(len(y))
    options = {"n_estimators": 1, "max_samples": 1.0, "bootstrap": False, "random_state": 0}
    model = DAMVIClassifier(FastTreeClassifier(max_depth=2), **options)
    voter = model.fit(X, y, sample_weight=weights).estimators_[0]
    alone = DecisionTreeClassifier(max_depth=2).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(voter.predict_proba(X), alone.predict_proba(X), atol=1e-6)


def test_blocks_threads_and_formats_do_not_change_the_vote(table, monkeypatch):
    X, y = table
    model = DAMVIClassifier(n_estimators=20, random_state=0).fit(X, y)
    vote = model.vote(X)
    np.testing.assert_array_equal(vote, [model.vote(x[np.newaxis])[0] for x in X])
    np.testing.assert_array_equal(vote, model.vote(sparse.csr_matrix(X)))
    np.testing.assert_array_equal(vote, model.vote(np.asfortranarray(X)))
    monkeypatch.setattr("damvi.voters.trees.binning.BLOCK_CELLS", 50)
    monkeypatch.setattr("damvi.voters.trees.estimators.VOTES_WORTH_A_THREAD", 0)
    np.testing.assert_array_equal(vote, model.set_params(n_jobs=2).vote(X))


def test_more_trees_than_256_bins_and_a_pickle(table):
    X, y = table
    model = DAMVIClassifier(n_estimators=10, random_state=0).fit(X, y)
    data = pickle.dumps(model)
    np.testing.assert_array_equal(pickle.loads(data).vote(X), model.vote(X))
    nodes = sum(len(voter.trees_.forest.nodes) for voter in model.estimators_)
    assert len(data) < 60 * nodes + 8 * len(y) + 30_000


@pytest.mark.parametrize(
    "options",
    [{"max_depth": 0}, {"max_features": 2.5}, {"max_features": 0}, {"min_samples_leaf": 0}],
)
def test_options_of_the_voter_are_checked_inside_damvi(table, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        DAMVIClassifier(FastTreeClassifier(**options), n_estimators=2).fit(*table)


def test_numpy_integers_are_numbers_of_features():
    assert FastTreeClassifier(max_features=np.int64(3)).features_to_try(10) == 3


def test_other_columns_never_reach_the_kernels(table):
    X, y = table
    model = DAMVIClassifier(n_estimators=3, random_state=0, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="must not change"):
        model.set_params(n_estimators=5).fit(np.hstack([X, X]), y)
    model = DAMVIClassifier(n_estimators=3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        model.fit(X[:, :2], np.zeros(len(y)))
    with pytest.raises(ValueError, match="grown on 6"):
        model.predict(X[:, :2])
