"""The voters and both classifiers on three classes or more."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from damvi import FastTreeClassifier
from damvi.voters import BootstrapSampling, FastForestClassifier
from damvi.voters.trees.binning import MAX_BINS, class_quantile_edges, signs_that_count
from damvi.voters.trees.estimators import TreeVoters, fixed_point


@pytest.fixture(scope="module")
def table():
    X, y = make_classification(
        1500,
        8,
        n_informative=6,
        n_classes=5,
        weights=[0.5, 0.2, 0.15, 0.1, 0.05],
        random_state=0,
    )
    return X.round(1), y


def voters_of(X, y, n_voters=6, max_samples=0.5, **options):
    n_classes = options.pop("n_classes", int(y.max()) + 1)
    tree = options.pop("tree", FastTreeClassifier())
    draws = BootstrapSampling.plan(y, max_samples=max_samples, seed=3)
    return TreeVoters.train(tree, X, y, draws, n_voters, n_classes=n_classes, **options)


def test_it_fits_as_well_as_cart(table):
    X, y = table
    ours = FastTreeClassifier(random_state=0).fit(X, y)
    cart = DecisionTreeClassifier(random_state=0).fit(X, y)
    assert ours.score(X, y) == cart.score(X, y) == 1
    assert ours.get_n_leaves() == pytest.approx(cart.get_n_leaves(), rel=0.1)
    assert ours.feature_importances_ == pytest.approx(cart.feature_importances_, abs=0.1)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_shallow_trees_have_the_training_accuracy_of_cart(depth):
    X, y = load_iris(return_X_y=True)
    ours = FastTreeClassifier(max_depth=depth, random_state=0).fit(X, y)
    cart = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y)
    assert ours.score(X, y) == cart.score(X, y)


def test_labels_of_any_kind_are_given_back(table):
    X, y = table
    names = np.array(["e", "b", "aa", "d", "c"])[y]
    model = FastTreeClassifier(random_state=0).fit(X, names)
    assert model.classes_.tolist() == ["aa", "b", "c", "d", "e"]
    np.testing.assert_array_equal(model.predict(X), names)


def test_the_shares_of_a_leaf_are_its_probabilities_and_a_tie_goes_to_the_first():
    X = np.array([[0.0]] * 5 + [[1.0]] * 4)
    y = np.array([2, 2, 1, 1, 0, 3, 3, 3, 0])
    model = FastTreeClassifier(random_state=0).fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba([[0.0], [1.0]]), [[0.2, 0.4, 0.4, 0], [0.25, 0, 0, 0.75]]
    )
    assert model.predict([[0.0], [1.0]]).tolist() == [1, 3]


def test_weights_count_like_repeated_rows(table):
    X, y = table
    counts = np.random.default_rng(0).integers(0, 3, len(y))
    repeated = FastTreeClassifier(random_state=0).fit(
        np.repeat(X, counts, 0), np.repeat(y, counts)
    )
    weighted = FastTreeClassifier(random_state=0).fit(X, y, sample_weight=counts)
    np.testing.assert_array_equal(repeated.predict_proba(X), weighted.predict_proba(X))


def test_weights_far_apart_lose_no_row_that_counts():
    weights = np.concatenate([np.ones(1000), np.full(1000, 1e-8), [0.0, 2.0**-33]])
    numbers = fixed_point(weights, 3)
    assert numbers[:2000].min() == 1
    assert numbers[2000:].tolist() == [0, 0]
    assert numbers.sum() < 2**30
    assert fixed_point(np.array([1.0, 0.5]), 3).tolist() == [2**28, 2**27]


@pytest.mark.parametrize("missing", [False, True])
def test_the_converted_tree_answers_the_same(table, missing):
    X, y = table
    X = X.astype(np.float32).astype(float)
    if missing:
        X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    tree = FastTreeClassifier(random_state=0, max_depth=7).fit(X, y)
    converted = tree.to_sklearn()
    np.testing.assert_array_equal(tree.predict(X), converted.predict(X))
    np.testing.assert_allclose(tree.predict_proba(X), converted.predict_proba(X))
    assert converted.n_classes_ == 5


def test_categories_of_many_classes_are_taken_as_they_are():
    rng = np.random.RandomState(0)
    y = rng.randint(0, 6, 600)
    colours = np.array(list("abcdefghijkl"))[2 * y + rng.randint(0, 2, 600)]
    frame = pd.DataFrame({"colour": pd.Categorical(colours), "noise": rng.rand(600)})
    model = FastTreeClassifier(random_state=0).fit(frame, y)
    assert model.score(frame, y) == 1
    assert model.get_n_leaves() == 6


def test_sparse_and_dense_tables_grow_the_same_trees(table):
    X, y = table
    X = np.where(np.abs(X) < 1, 0, X)
    dense, votes = voters_of(X, y)
    csr, same = voters_of(sparse.csr_matrix(X), y)
    np.testing.assert_array_equal(votes, same)
    np.testing.assert_array_equal(dense.forest.nodes, csr.forest.nodes)


def test_votes_are_the_numbers_of_classes_in_a_byte_each(table):
    X, y = table
    voters, votes = voters_of(X, y)
    assert votes.dtype == np.uint8
    assert votes.shape == (len(y), 6)
    np.testing.assert_array_equal(votes, voters.votes(X))
    for k, tree in enumerate(voters.estimators):
        assert tree.classes_.tolist() == [0, 1, 2, 3, 4]
        np.testing.assert_array_equal(votes[:, k], tree.predict(X))
    weights = np.array([0.25, 0, 0.25, 0.125, 0.25, 0.125])
    by_hand = np.array([(votes == c) @ weights for c in range(5)]).T
    np.testing.assert_array_equal(voters.weighted_vote(X, weights), by_hand)


@pytest.mark.parametrize("at_once", [True, False])
def test_all_nodes_at_once_and_step_by_step_agree(table, at_once):
    X, y = table
    voters, votes = voters_of(X, y, tree=FastTreeClassifier(max_depth=4))
    voters.forest.__dict__["at_once"] = np.full(len(voters), at_once)
    np.testing.assert_array_equal(voters.votes(X), votes)


@pytest.mark.parametrize("options", [{}, {"max_features": 2}, {"min_samples_leaf": 4}])
def test_neither_threads_nor_a_second_run_change_anything(table, options):
    X, y = table
    tree = FastTreeClassifier(**options)
    one, votes = voters_of(X, y, tree=tree)
    two, same = voters_of(X, y, tree=tree, n_jobs=2)
    np.testing.assert_array_equal(votes, same)
    np.testing.assert_array_equal(one.forest.weights, two.forest.weights)
    few, _ = voters_of(X, y, 2, tree=tree)
    _, more = voters_of(X, y, 6, tree=tree, known=few)
    np.testing.assert_array_equal(votes, more)


def test_a_class_of_one_row_is_learned_and_may_be_missing_from_a_draw(table):
    X, y = table
    y = y.copy()
    y[7] = 5
    assert FastTreeClassifier(random_state=0).fit(X, y).predict(X[7:8]) == [5]
    voters, votes = voters_of(X, y, 30)
    draws = BootstrapSampling.plan(y, max_samples=0.5, seed=3)
    drawn = np.array([draws.counts(k)[7] > 0 for k in range(30)])
    assert 0 < drawn.sum() < 30
    np.testing.assert_array_equal(votes[7] == 5, drawn)
    assert voters.n_without_class.tolist() == [0, 0, 0, 0, 0, 30 - drawn.sum()]


def test_fifty_classes_and_missing_values():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 50, 3000)
    X = np.column_stack([y // 10, y % 10, rng.random(3000)]).astype(float)
    X[rng.random(X.shape) < 0.02] = np.nan
    model = FastTreeClassifier(random_state=0).fit(X, y)
    cart = DecisionTreeClassifier(random_state=0).fit(X, y)
    assert cart.score(X, y) - 0.01 < model.score(X, y) <= 1
    assert model.predict_proba(X).shape == (3000, 50)
    forest = FastForestClassifier(10, max_features=None, random_state=0).fit(X, y)
    assert forest.score(X, y) > 0.97


def test_more_classes_than_a_byte_holds_are_refused_with_a_cure():
    y = np.repeat(np.arange(257), 3)
    for model in (FastTreeClassifier(), FastForestClassifier(2)):
        with pytest.raises(ValueError, match=r"257 classes, but at most 256 .* merge"):
            model.fit(y[:, np.newaxis], y)
        assert len(model.fit(y[3:, np.newaxis], y[3:]).classes_) == 256


def test_the_forest_is_as_good_as_scikit_learns(table):
    X, y = table
    X, Z, y, z = X[::2], X[1::2], y[::2], y[1::2]
    ours = FastForestClassifier(random_state=0).fit(X, y)
    other = RandomForestClassifier(random_state=0).fit(X, y)
    assert ours.score(Z, z) > other.score(Z, z) - 0.02
    assert np.corrcoef(ours.predict_proba(Z).ravel(), other.predict_proba(Z).ravel())[
        0, 1
    ] == pytest.approx(1, abs=0.03)
    trees = [tree.predict_proba(Z) for tree in ours.trees_.estimators]
    np.testing.assert_allclose(ours.predict_proba(Z), np.mean(trees, axis=0))
    again = pickle.loads(pickle.dumps(ours)).set_params(n_jobs=2)
    np.testing.assert_array_equal(again.predict_proba(Z), ours.predict_proba(Z))


def test_a_balanced_forest_sees_all_classes_alike(table):
    X, y = table
    model = FastForestClassifier(balanced=True, random_state=0).fit(X, y)
    roots = model.trees_.forest.weights[model.trees_.forest.roots[:-1]]
    assert (roots.sum(axis=1) == 5 * min(np.bincount(y))).all()
    assert roots.mean(axis=0) == pytest.approx(roots.mean(), rel=0.06)
    without = np.where(y == 4, 0.0, 1.0)  # a class that no weight is left for
    model.fit(X, y, sample_weight=without)
    assert model.predict_proba(X)[:, 4].max() == 0


def test_rare_classes_keep_bins_of_their_own():
    rng = np.random.default_rng(0)
    common, first, second = rng.normal(size=60_000), 3 + rng.random(8), -4 + rng.random(5)
    edges = class_quantile_edges(np.concatenate([common, first, second]), first, second)
    assert len(edges) <= MAX_BINS - 1
    for rare in (first, second):
        assert len(np.unique(np.searchsorted(edges, rare))) == len(rare)


def test_the_largest_class_is_the_common_one_and_the_rarest_come_first():
    labels = np.array([0, 1, 1, 1, 2, 2, 3, 3])
    assert signs_that_count(labels, 4, None).tolist() == [1, -1, -1, -1, 2, 2, 3, 3]
    weights = np.array([1, 0, 0, 0, 1, 1, 1, 0.0])
    signs = signs_that_count(labels, 4, weights)
    assert signs.tolist() == [2, 0, 0, 0, -1, -1, 3, 0]
    assert signs_that_count(np.array([0, 1]), 2, None).tolist() == [-1, 1]
