"""Bad and odd input with three or more classes: an error that says the cure, or sound."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier, DAMVIVotingClassifier

POOL = [("bayes", GaussianNB()), ("linear", LogisticRegression())]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [150, 40, 10])
    X = rng.normal(size=(200, 3)) + 2 * np.eye(3)[y]
    return X, y


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pos_label": 1}, r"Only binary.*pos_label=1, but y has 3 classes.*y == 1"),
        ({"threshold": "f1"}, r"Only binary.*threshold='f1', but y has 3.*'macro_f1'"),
        ({"threshold": 0.3}, r"threshold=0.3, but y has 3.*3 positive factors"),
        ({"threshold": [1.0, 2.0]}, r"threshold=\[1.0, 2.0\] must be 3 positive, finite"),
        ({"threshold": [1.0, -2.0, 1.0]}, "3 positive, finite factors"),
        ({"threshold": (1, np.nan, 1)}, "3 positive, finite factors"),
        ({"threshold": {"recall": 0.9}}, "but y has 3 classes; use 'vote'"),
    ],
)
def test_settings_for_two_classes_are_refused(data, settings, message):
    with pytest.raises(ValueError, match=message):
        DAMVIClassifier(GaussianNB(), n_estimators=2, **settings).fit(*data)


def test_factors_may_be_given(data):
    X, y = data
    model = DAMVIClassifier(DecisionTreeClassifier(), n_estimators=5, random_state=0)
    never = model.set_params(threshold=[1e-9, 1.0, 1.0]).fit(X, y).predict(X)
    assert (never == 0).mean() < (model.reweigh(threshold="vote").predict(X) == 0).mean()
    assert model.tuning_ is None


def test_voters_for_two_classes_alone_are_named_as_such(data):
    class OnlyTwo(DummyClassifier):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.classifier_tags.multi_class = False
            return tags

    with pytest.raises(ValueError, match=r"Only binary.*voters given, but y has 3"):
        DAMVIClassifier(OnlyTwo()).fit(*data)


def test_too_many_classes():
    with pytest.raises(ValueError, match=r"257 classes, but at most 256.*regressor"):
        DAMVIClassifier().fit(np.arange(514.0)[:, None], np.arange(514) % 257)


def test_weights_that_leave_out_a_class(data):
    X, y = data
    with pytest.raises(ValueError, match=r"leaves no row of class 2.*remove these rows"):
        DAMVIClassifier(n_estimators=2).fit(X, y, sample_weight=(y < 2).astype(float))


@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier(), GaussianNB()])
@pytest.mark.parametrize("votes", ["train", "oob"])
def test_a_class_with_one_row_is_told_of_and_kept(data, estimator, votes):
    X, y = data
    y = np.where(np.arange(200) == 3, 9, y)
    model = DAMVIClassifier(estimator, n_estimators=15, votes=votes, random_state=0)
    with pytest.warns(UserWarning, match="drew none of the 1 row of class 9.*stratified"):
        model.fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2, 9]
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("settings", [{}, {"voting": "hard"}, {"calibration": "isotonic"}])
def test_a_pool_with_a_class_of_one_row(data, settings):
    X, y = data
    y = np.where(np.arange(200) == 3, 9, y)
    model = DAMVIVotingClassifier(POOL[:1], random_state=0, **settings).fit(X, y)
    chances = model.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert (model.predict(X) == y).mean() > 0.7
    assert np.isfinite(model.tuning_.honest_value)


def test_a_class_that_lives_in_one_group(data):
    X, y = data
    groups = np.where(y == 2, 0, np.arange(200) % 4)
    model = DAMVIVotingClassifier(POOL, cv=GroupKFold(4), random_state=0)
    model.fit(X, y, groups=groups)
    assert (model.predict(X) == 1).any()
    # Judged by models that never met it, the class could not be found.
    assert not model.votes_.votes[y == 2, :, 2].max() > 0.5


def test_folds_that_leave_one_class_to_train_on():
    X, y = np.arange(30.0)[:, None], np.repeat([0, 1, 2], 10)
    splits = [(np.arange(10), np.arange(10, 30)), (np.arange(10, 30), np.arange(10))]
    with pytest.raises(ValueError, match="fold 0 has 10 training rows of a single class"):
        DAMVIVotingClassifier(POOL, cv=splits).fit(X, y)


def test_models_fitted_on_other_classes(data):
    X, y = data
    named = [("bayes", GaussianNB().fit(X, y + 1))]
    with pytest.raises(ValueError, match=r"'bayes' was fitted on the classes .*y has"):
        DAMVIVotingClassifier(named, cv="prefit").fit(X, y)
    fewer = [("all", GaussianNB().fit(X, y)), ("two", GaussianNB().fit(X[y < 2], y[y < 2]))]
    model = DAMVIVotingClassifier(fewer, cv="prefit", random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (200, 3)


def test_labels_of_different_kinds_are_named(data):
    X, y = data
    mixed = np.array(["a", 1, 2], dtype=object)[y]
    with pytest.raises(TypeError, match="type int and str, which cannot be sorted"):
        DAMVIClassifier(n_estimators=2).fit(X, mixed)
