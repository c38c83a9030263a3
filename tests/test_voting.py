"""DAMVIClassifier with pools, honest votes and tuned thresholds."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from damvi import DAMVIClassifier, FastTreeClassifier
from damvi.voters import strong_pool

POOL = [
    ("linear", LogisticRegression()),
    ("bayes", GaussianNB()),
    ("tree", DecisionTreeClassifier(max_depth=4)),
]


@pytest.fixture(scope="module")
def table():
    return make_classification(
        1500, 6, weights=[0.9], flip_y=0.05, class_sep=1.2, random_state=4
    )


@pytest.fixture(scope="module")
def pool(table):
    return DAMVIClassifier(POOL, random_state=0).fit(*table)


def may_fail(estimator):
    repeated = "repeated rows fall into other folds, and other draws, than weights do"
    checks = {"check_sample_weight_equivalence_on_dense_data": repeated}
    if isinstance(estimator.estimator, list):
        # As with scikit-learn's own TunedThresholdClassifierCV.
        tuned = "predict follows the tuned threshold, not the larger probability"
        return checks | {"check_classifiers_train": tuned}
    return checks | {"check_sample_weight_equivalence_on_sparse_data": repeated}


checks = parametrize_with_checks(
    [
        DAMVIClassifier(POOL[:2]),
        DAMVIClassifier(votes="oob", n_estimators=10, threshold="f1"),
    ],
    expected_failed_checks=may_fail,
).mark


# A list, since older releases of scikit-learn hand pytest a generator, which it deprecates.
@pytest.mark.filterwarnings("ignore:No voter does better")
@pytest.mark.parametrize(checks.args[0], list(checks.args[1]), **checks.kwargs)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_a_pool_is_soft_calibrated_and_tuned(pool, table):
    X, y = table
    assert list(pool.cast_votes(X[:4]).shape) == [4, 3]
    assert pool.cast_votes(X[:4]).dtype == np.float32
    assert pool.weights_.sum() == pytest.approx(1)
    assert pool.threshold_ != 0
    assert pool.tuning_.honest_value <= pool.tuning_.value
    # The decision is the sign, and follows the threshold.
    decision = pool.decision_function(X)
    assert (pool.predict(X) == (decision > 0)).all()
    np.testing.assert_allclose(decision, pool.vote(X) - pool.threshold_)
    # A chance, true to the class rate, that ranks as the vote does.
    chance = pool.predict_proba(X)[:, 1]
    assert (np.argsort(chance, kind="stable") == np.argsort(decision, kind="stable")).all()
    assert chance.mean() == pytest.approx(y.mean(), rel=0.15)


def test_the_unseen_vote_knows_nothing_of_the_row(pool, table):
    _, y = table
    unseen = pool.oob_decision_function_
    assert 0.6 < roc_auc_score(y, unseen) < 1
    assert f1_score(y, unseen > 0) == pytest.approx(pool.tuning_.value)


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_jobs_change_nothing(table, voting):
    X, y = table
    models = [
        DAMVIClassifier(POOL, voting=voting, n_jobs=n, random_state=1) for n in (1, 2)
    ]
    one, two = (model.fit(X, y).predict_proba(X) for model in models)
    assert (one == two).all()


def test_fitted_models_are_taken_as_they_are(table):
    X, y = table
    labels = np.where(y == 1, "bad", "good")
    fitted = [(name, clone(model).fit(X[:700], labels[:700])) for name, model in POOL]
    model = DAMVIClassifier(fitted, votes="prefit").fit(X[700:], labels[700:])
    assert model.pos_label_ == "bad"
    assert model.estimators_[0] is fitted[0][1]
    assert set(model.predict(X)) == {"bad", "good"}
    one = fitted[2][1].predict_proba(X[:5])[:, list(fitted[2][1].classes_).index("bad")]
    assert (np.diff(one) >= 0).tolist() == (
        np.diff(model.cast_votes(X[:5])[:, 2]) >= 0
    ).tolist()


def test_groups_and_splitters(table):
    X, y = table
    groups = np.arange(len(y)) // 5
    model = DAMVIClassifier(POOL, cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert len(model.weights_) == 3
    many = DAMVIClassifier(POOL[1:2], cv=GroupKFold(200))
    assert np.isfinite(many.fit(X, y, groups=groups).oob_decision_function_).all()
    with pytest.raises(TypeError, match="a pool takes groups, and not colour"):
        DAMVIClassifier(POOL).fit(X, y, colour=groups)


class Memory(ClassifierMixin, BaseEstimator):
    """Knows every row that it has seen by heart, and nothing else."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.known_ = {row.tobytes(): label for row, label in zip(X, y, strict=True)}
        return self

    def predict(self, X):
        return np.array([self.known_.get(row.tobytes(), 0) for row in X])

    def predict_proba(self, X):
        said = self.predict(X)
        return np.column_stack([1 - said, said]).astype(float)


def test_a_voter_that_memorises_gets_no_weight(table):
    X, y = table
    named = [("memory", Memory()), ("linear", LogisticRegression())]
    model = DAMVIClassifier(named, random_state=0).fit(X, y)
    assert model.weights_[0] < 0.02
    hard = DAMVIClassifier(named, voting="hard", random_state=0).fit(X, y)
    assert hard.weights_[0] <= hard.weights_[1]


@pytest.mark.parametrize(
    "settings",
    [
        {"votes": "oob", "threshold": "f1", "n_estimators": 50},
        {"threshold": "f1", "n_estimators": 50},
        {
            "estimator": [
                ("near", KNeighborsClassifier(1)),
                ("tree", DecisionTreeClassifier()),
                ("linear", LogisticRegression()),
            ]
        },
    ],
    ids=["oob", "train", "pool"],
)
@pytest.mark.filterwarnings("ignore:No voter does better")
def test_coin_flips_score_as_chance_does(settings):
    aucs, gains = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(1000, 4)), np.zeros(1000, int)
        y[rng.choice(1000, 50, replace=False)] = 1
        model = DAMVIClassifier(random_state=seed, **settings).fit(X, y)
        aucs.append(roc_auc_score(y, model.oob_decision_function_))
        # Flagging every row has an F1 of .095, and no rule can do better.
        gains.append(model.tuning_.honest_value - 2 * 0.05 / 1.05)
    error = np.std(aucs, ddof=1) / np.sqrt(len(aucs))
    assert abs(np.mean(aucs) - 0.5) < 3.5 * error
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    assert np.mean(gains) < 3.5 * error


@pytest.mark.parametrize(
    ("threshold", "check"),
    [
        ({"recall": 0.9}, lambda model, y, flags: flags[y == 1].mean() > 0.8),
        ({"cost": (1, 100)}, lambda model, y, flags: flags.mean() > 0.3),
        (0.25, lambda model, y, flags: model.threshold_ == 0.25),
        ("vote", lambda model, y, flags: model.threshold_ == 0),
    ],
    ids=["recall", "cost", "number", "vote"],
)
def test_thresholds(table, threshold, check):
    X, y = table
    model = DAMVIClassifier(threshold=threshold, random_state=0).fit(X, y)
    flags = model.predict(X) == 1
    assert check(model, y, flags)
    assert (flags == (model.decision_function(X) > 0)).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"estimator": POOL, "votes": "train"}, "a list of voters takes 'oof'"),
        ({"votes": "oof"}, "a single one, drawn many times, 'train' or 'oob'"),
        ({"voting": "soft"}, "is for a list of voters"),
        ({"estimator": []}, "the pool is empty"),
        ({"estimator": POOL + POOL[:1]}, "names must differ"),
        ({"estimator": POOL, "warm_start": True}, "no use for a pool"),
        ({"threshold": "best"}, "best"),
        ({"shrinkage": 1.0}, "shrinkage"),
        ({"reweight": -1.0}, "reweight"),
    ],
)
def test_settings_that_do_not_go_together(table, settings, words):
    with pytest.raises(ValueError, match=words):
        DAMVIClassifier(**settings).fit(*table)


def test_shrinkage_draws_the_weights_together(table):
    spread = [
        np.ptp(DAMVIClassifier(shrinkage=s, random_state=0).fit(*table).weights_)
        for s in (0, 0.5, 0.99)
    ]
    assert spread[0] > spread[1] > spread[2]
    assert spread[2] < 0.001


def test_in_pipelines_searches_frames_and_pickles(table):
    X, y = table
    frame = pd.DataFrame(X, columns=list("abcdef"))
    search = GridSearchCV(
        make_pipeline(StandardScaler(), DAMVIClassifier(POOL, random_state=0)),
        {"damviclassifier__shrinkage": [0, 0.5]},
        cv=2,
    ).fit(frame, y)
    again = pickle.loads(pickle.dumps(search))
    assert (again.predict(frame) == search.predict(frame)).all()


def test_other_settings_without_another_training(table):
    X, y = table
    model = DAMVIClassifier(n_estimators=30, random_state=0).fit(X, y)
    trees = model.estimators_
    again = model.reweigh(shrinkage=0.3, reweight=0.5, threshold="f1")
    assert again is model
    fresh = DAMVIClassifier(
        n_estimators=30, shrinkage=0.3, reweight=0.5, threshold="f1", random_state=0
    ).fit(X, y)
    assert (model.weights_ == fresh.weights_).all()
    assert model.threshold_ == fresh.threshold_
    assert (model.predict(X) == fresh.predict(X)).all()
    assert len(trees) == 30
    with pytest.raises(TypeError, match="and not n_estimators"):
        model.reweigh(n_estimators=3)
    loaded = pickle.loads(pickle.dumps(model))
    assert (loaded.decision_function(X) == model.decision_function(X)).all()
    with pytest.raises(AttributeError, match="not saved with a model"):
        loaded.reweigh(shrinkage=0)


def test_a_list_takes_missing_values_if_its_voters_do(table):
    X, y = table
    X = X.copy()
    X[::7, 0] = np.nan
    takes = make_pipeline(SimpleImputer(), LogisticRegression())
    model = DAMVIClassifier([("filled", takes), ("trees", FastTreeClassifier())], cv=2)
    assert model.fit(X, y).predict(X).shape == y.shape
    with pytest.raises(ValueError, match=r"voter 'bayes'(.|\n)*contains NaN"):
        DAMVIClassifier([("filled", takes), ("bayes", GaussianNB())], cv=2).fit(X, y)


@pytest.mark.parametrize("wrong", [{"threshold": "bogus"}, {"shrinkage": 1.5}])
def test_a_failed_reweighing_changes_nothing(table, wrong):
    X, y = table
    model = DAMVIClassifier(n_estimators=20, random_state=0).fit(X, y)
    before, chance = model.get_params(), model.predict_proba(X)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        model.reweigh(**{"reweight": 0.5, **wrong})
    assert model.get_params() == before
    np.testing.assert_array_equal(model.predict_proba(X), chance)
    model.reweigh()


def test_one_huge_weight_does_not_flatten_the_voters(table):
    X, y = table
    weights = np.ones(1000)
    weights[0] = 1e6
    model = DAMVIClassifier(POOL, random_state=0)
    model.fit(X[:1000], y[:1000], sample_weight=weights)
    assert roc_auc_score(y[1000:], model.decision_function(X[1000:])) > 0.7


def test_a_list_without_names_is_told_so(table):
    with pytest.raises(ValueError, match="give each voter a name"):
        DAMVIClassifier([LogisticRegression(), GaussianNB()]).fit(*table)


def test_folds_of_fitted_models_heed_groups(table):
    X, y = table
    fitted = [(name, clone(voter).fit(X[:500], y[:500])) for name, voter in POOL]
    groups = np.arange(1000) // 5
    model = DAMVIClassifier(fitted, votes="prefit", cv=4).fit(
        X[500:], y[500:], groups=groups
    )
    folds = model._ballots.folds
    assert len(np.unique(np.stack([groups, folds]), axis=1).T) == 200
    assert folds.max() == 3


def test_importances_of_a_pool_count_each_voter_alike(table):
    forest = ("forest", RandomForestClassifier(10, random_state=0))
    model = DAMVIClassifier([forest, *POOL], cv=3, solver="uniform").fit(*table)
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_the_linear_voters_ignore_what_tables_others_want(table):
    X, y = table
    frame = pd.DataFrame(X[:300])
    frame.columns = [f"x{j}" for j in frame.columns]
    frame["kind"] = pd.Categorical(np.where(X[:300, 0] > 0, "a", "b"))
    pool = [one for one in strong_pool(0) if "linear" in one[0]]
    with sklearn.config_context(transform_output="pandas"):
        model = DAMVIClassifier(pool, cv=2).fit(frame, y[:300])
        assert model.predict(frame).shape == (300,)
