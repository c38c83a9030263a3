"""DAMVIVotingClassifier: any models, calibrated, weighted and tuned out of fold."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier, DAMVIVotingClassifier, FastTreeClassifier, Unlabeled
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
    return DAMVIVotingClassifier(POOL, random_state=0).fit(*table)


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
        DAMVIVotingClassifier(POOL, voting=voting, n_jobs=n, random_state=1) for n in (1, 2)
    ]
    one, two = (model.fit(X, y).predict_proba(X) for model in models)
    assert (one == two).all()


def test_fitted_models_are_taken_as_they_are(table):
    X, y = table
    labels = np.where(y == 1, "bad", "good")
    fitted = [(name, clone(model).fit(X[:700], labels[:700])) for name, model in POOL]
    model = DAMVIVotingClassifier(fitted, cv="prefit").fit(X[700:], labels[700:])
    assert model.pos_label_ == "bad"
    assert model.estimators_[0] is fitted[0][1]
    assert set(model.predict(X)) == {"bad", "good"}
    one = fitted[2][1].predict_proba(X[:5])[:, list(fitted[2][1].classes_).index("bad")]
    assert (np.diff(one) >= 0).tolist() == (
        np.diff(model.cast_votes(X[:5])[:, 2]) >= 0
    ).tolist()


@pytest.mark.slow
def test_groups_and_splitters(table):
    X, y = table
    groups = np.arange(len(y)) // 5
    model = DAMVIVotingClassifier(POOL, cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert len(model.weights_) == 3
    many = DAMVIVotingClassifier(POOL[1:2], cv=GroupKFold(200))
    assert np.isfinite(many.fit(X, y, groups=groups).oob_decision_function_).all()
    with pytest.raises(TypeError, match="accepts groups, but not colour"):
        DAMVIVotingClassifier(POOL).fit(X, y, colour=groups)


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
    plain = {"fit_intercept": False, "shrinkage": 0.001, "random_state": 0}
    assert DAMVIVotingClassifier(named, **plain).fit(X, y).weights_[0] < 0.02
    # Beside a constant of ours it may have some, since it says the same of all other rows.
    model = DAMVIVotingClassifier(named, random_state=0).fit(X, y)
    assert np.ptp(model.cast_votes(X + 1e-3)[:, 0]) == 0
    hard = DAMVIVotingClassifier(named, voting="hard", random_state=0).fit(X, y)
    assert hard.weights_[0] <= hard.weights_[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        DAMVIClassifier(votes="oob", threshold="f1", n_estimators=50),
        DAMVIClassifier(threshold="f1", n_estimators=50),
        DAMVIVotingClassifier(
            [
                ("near", KNeighborsClassifier(1)),
                ("tree", DecisionTreeClassifier()),
                ("linear", LogisticRegression()),
            ]
        ),
    ],
    ids=["oob", "train", "pool"],
)
@pytest.mark.filterwarnings("ignore:No voter is better")
def test_coin_flips_score_as_chance_does(model):
    aucs, gains = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(1000, 4)), np.zeros(1000, int)
        y[rng.choice(1000, 50, replace=False)] = 1
        fitted = clone(model).set_params(random_state=seed).fit(X, y)
        aucs.append(roc_auc_score(y, fitted.oob_decision_function_))
        # Flagging every row has an F1 of .095, and no rule can do better.
        gains.append(fitted.tuning_.honest_value - 2 * 0.05 / 1.05)
    error = np.std(aucs, ddof=1) / np.sqrt(len(aucs))
    assert abs(np.mean(aucs) - 0.5) < 3.5 * error
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    assert np.mean(gains) < 3.5 * error


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"estimators": []}, "the pool is empty"),
        ({"estimators": POOL + POOL[:1]}, "[Nn]ames provided are not unique"),
        ({"estimators": [("voting", GaussianNB())]}, "conflict with constructor arguments"),
        ({"estimators": [("a__b", GaussianNB())]}, "must not contain __"),
        ({"estimators": [("splitter", GaussianNB())]}, "choose another name"),
        ({"estimators": [("linear", LinearRegression())]}, "'linear' .*not a classifier"),
        ({"estimators": [(name, "drop") for name, _ in POOL]}, "keep at least one"),
        ({"estimators": tuple(POOL)}, "must be 'strong' or a list"),
        ({"estimators": "weak"}, "must be 'strong' or a list"),
        ({"estimators": GaussianNB()}, "use damvi.DAMVIClassifier"),
        ({"estimators": [*POOL, ("none", None)]}, "'none' is None; use 'drop'"),
        ({"estimators": [*POOL, ("text", "bayes")]}, "'text' is the text 'bayes'"),
        ({"estimators": [*POOL, ("kind", GaussianNB)]}, "the class GaussianNB; write"),
        ({"estimators": "strong", "cv": "prefit"}, "a list of .name, fitted model."),
        ({"voting": "loud"}, "'voting' parameter"),
        ({"calibration": "magic"}, "'calibration' parameter"),
        ({"balance": 2.0}, "'balance' parameter"),
        ({"threshold": "best"}, "best"),
        ({"shrinkage": 1.0}, "shrinkage"),
        ({"reweight": -1.0}, "reweight"),
        ({"unlabeled_weight": 1.0}, "unlabeled_weight"),
        ({"pos_label": 7}, r"pos_label=7 is not one of the classes in y"),
        ({"cv": 1}, "cv=1 must be between 2 and 100 folds"),
        ({"cv": "prefit"}, "voter 'linear': .*not fitted"),
    ],
    ids=str,
)
def test_bad_settings_are_named(table, settings, words):
    with pytest.raises((ValueError, TypeError), match=words):
        DAMVIVotingClassifier(**{"estimators": POOL, **settings}).fit(*table)


def test_parameters_of_the_voters_are_nested(table):
    model = DAMVIVotingClassifier([(name, clone(voter)) for name, voter in POOL])
    assert model.get_params()["tree__max_depth"] == 4
    assert model.get_params()["bayes"] is model.estimators[1][1]
    assert "tree" not in model.get_params(deep=False)
    model.set_params(tree__max_depth=2, bayes=KNeighborsClassifier(3), shrinkage=0.1)
    assert model.estimators[2][1].max_depth == 2
    assert isinstance(model.estimators[1][1], KNeighborsClassifier)
    assert model.shrinkage == 0.1
    with pytest.raises(ValueError, match="Invalid parameter 'forest'"):
        model.set_params(forest=GaussianNB())
    copy = clone(model)
    assert copy.get_params()["tree__max_depth"] == 2
    assert copy.estimators[2][1] is not model.estimators[2][1]
    # The voters given stay as they are; those that are trained are copies of them.
    model.fit(*table)
    assert not hasattr(model.estimators[2][1], "tree_")
    assert model.named_estimators_["tree"].get_depth() == 2


def test_the_strong_pool_has_no_parameters_of_its_own():
    model = DAMVIVotingClassifier()
    assert model.estimators == "strong"
    assert set(model.get_params()) == set(model.get_params(deep=False))
    assert clone(model.set_params(shrinkage=0.2)).shrinkage == 0.2


def test_a_voter_can_be_dropped(table, pool):
    X, y = table
    model = DAMVIVotingClassifier(POOL, random_state=0).set_params(bayes="drop")
    model.fit(X, y)
    assert list(model.named_estimators_) == ["linear", "tree"]
    assert len(model.estimators_) == len(model.weights_) == 2
    assert model.estimators[1] == ("bayes", "drop")
    # A voter is the same in any pool.
    alone = DAMVIVotingClassifier([POOL[0], POOL[2]], random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.vote(X), alone.vote(X))
    back = model.set_params(bayes=GaussianNB()).fit(X, y)
    np.testing.assert_array_equal(back.weights_, pool.weights_)


def test_a_search_tries_voters_and_their_parameters(table):
    X, y = table
    search = GridSearchCV(
        DAMVIVotingClassifier(POOL, cv=2, random_state=0),
        [{"tree__max_depth": [1, 3]}, {"bayes": ["drop", GaussianNB()]}],
        scoring="average_precision",
        cv=2,
        error_score="raise",
    ).fit(X[:600], y[:600])
    assert len(search.cv_results_["params"]) == 4
    assert set(search.predict(X)) == {0, 1}


@pytest.mark.slow
def test_the_strong_pool_needs_no_settings(table):
    X, y = table
    model = DAMVIVotingClassifier(cv=2, random_state=0).fit(X[:600], y[:600])
    assert len(model.named_estimators_) >= 4
    assert list(model.named_estimators_) == [name for name, _ in strong_pool(0)]
    assert roc_auc_score(y[600:], model.decision_function(X[600:])) > 0.8
    assert model.votes_.n_folds == 2


@pytest.mark.slow
def test_in_pipelines_searches_frames_and_pickles(table):
    X, y = table
    frame = pd.DataFrame(X, columns=list("abcdef"))
    search = GridSearchCV(
        make_pipeline(StandardScaler(), DAMVIVotingClassifier(POOL, random_state=0)),
        {"damvivotingclassifier__shrinkage": [0, 0.5]},
        cv=2,
    ).fit(frame, y)
    again = pickle.loads(pickle.dumps(search))
    assert (again.predict(frame) == search.predict(frame)).all()


def test_a_pool_takes_missing_values_if_its_voters_do(table):
    X, y = table
    X = X.copy()
    X[::7, 0] = np.nan
    takes = make_pipeline(SimpleImputer(), LogisticRegression())
    pool = [("filled", takes), ("trees", FastTreeClassifier())]
    model = DAMVIVotingClassifier(pool, cv=2, unlabeled_weight=0.5)
    model.fit(X[:1000], y[:1000], X_unlabeled=Unlabeled(X[1000:]))
    assert model.predict(X).shape == y.shape
    with pytest.raises(ValueError, match=r"voter 'bayes'(.|\n)*contains NaN"):
        DAMVIVotingClassifier([("filled", takes), ("bayes", GaussianNB())], cv=2).fit(X, y)


def test_other_settings_without_another_training(table, pool):
    X, y = table
    model = DAMVIVotingClassifier(POOL, random_state=0).fit(X, y)
    voters = model.estimators_
    settings = {"reweight": 0.5, "shrinkage": 0.1, "threshold": {"recall": 0.8}}
    assert model.reweigh(**settings) is model
    assert all(a is b for a, b in zip(model.estimators_, voters, strict=True))
    fresh = DAMVIVotingClassifier(POOL, random_state=0, **settings).fit(X, y)
    np.testing.assert_array_equal(model.weights_, fresh.weights_)
    np.testing.assert_array_equal(model.predict_proba(X), fresh.predict_proba(X))
    assert model.threshold_ == fresh.threshold_
    with pytest.raises(TypeError, match=", not voting"):
        model.reweigh(voting="hard")
    with pytest.raises(ValueError, match="bogus"):
        model.reweigh(shrinkage=0.3, threshold="bogus")
    assert model.shrinkage == 0.1
    back = model.reweigh(reweight=False, shrinkage=0.03, threshold="auto")
    np.testing.assert_array_equal(back.predict_proba(X), pool.predict_proba(X))


def test_one_huge_weight_does_not_flatten_the_voters(table):
    X, y = table
    weights = np.ones(1000)
    weights[0] = 1e6
    model = DAMVIVotingClassifier(POOL, random_state=0)
    model.fit(X[:1000], y[:1000], sample_weight=weights)
    assert roc_auc_score(y[1000:], model.decision_function(X[1000:])) > 0.7


def test_a_list_without_names_is_told_so(table):
    with pytest.raises(ValueError, match=r"is not a \(name, classifier\) pair"):
        DAMVIVotingClassifier([LogisticRegression(), GaussianNB()]).fit(*table)


def test_folds_of_fitted_models_heed_groups(table):
    X, y = table
    fitted = [(name, clone(voter).fit(X[:500], y[:500])) for name, voter in POOL]
    groups = np.arange(1000) // 5
    model = DAMVIVotingClassifier(fitted, cv="prefit").fit(X[500:], y[500:], groups=groups)
    folds = model.votes_.folds
    assert len(np.unique(np.stack([groups, folds]), axis=1).T) == 200
    assert folds.max() == 4


def test_importances_of_a_pool_count_each_voter_alike(table):
    forest = ("forest", RandomForestClassifier(10, random_state=0))
    model = DAMVIVotingClassifier([forest, *POOL], cv=3, solver="uniform").fit(*table)
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_the_linear_voters_ignore_what_tables_others_want(table):
    X, y = table
    frame = pd.DataFrame(X[:300])
    frame.columns = [f"x{j}" for j in frame.columns]
    frame["kind"] = pd.Categorical(np.where(X[:300, 0] > 0, "a", "b"))
    pool = [one for one in strong_pool(0) if "linear" in one[0]]
    with sklearn.config_context(transform_output="pandas"):
        model = DAMVIVotingClassifier(pool, cv=2).fit(frame, y[:300])
        assert model.predict(frame).shape == (300,)


def test_independent_voters_of_a_rare_class_are_no_worse_than_their_plain_vote():
    """Without a constant the weight went to the most extreme voters, at .35 to .52 AP."""
    rng = np.random.default_rng(0)

    def rows(n):
        y = (rng.random(n) < 0.05).astype(int)
        return rng.normal(size=(n, 12)) + y[:, np.newaxis], y

    def column(k):
        return make_pipeline(ColumnTransformer([("own", "passthrough", [k])]), GaussianNB())

    (X, y), (new, truth) = rows(800), rows(4000)
    model = DAMVIVotingClassifier([(f"column {k}", column(k)) for k in range(12)])
    model.set_params(random_state=0).fit(X, y)
    plain = average_precision_score(truth, model.cast_votes(new).mean(axis=1))
    learned = average_precision_score(truth, model.vote(new))
    assert learned > plain - 0.02
    assert model.comparison_.plain_kept == np.allclose(model.weights_, 1 / 12)
    bare = model.reweigh(fit_intercept=False)
    assert average_precision_score(truth, bare.vote(new)) <= learned + 0.02


def test_an_unknown_voter_is_told_by_the_names_of_the_voters():
    pool = DAMVIVotingClassifier([("nb", GaussianNB()), ("tree", DecisionTreeClassifier())])
    with pytest.raises(
        ValueError, match=r"Invalid parameter 'forest'.* nor a voter \(nb, tree"
    ):
        pool.set_params(forest="drop")
    with pytest.raises(ValueError, match="fit creates those of the strong pool"):
        DAMVIVotingClassifier().set_params(forest__depth=3)
    assert pool.set_params(nb="drop", tree__max_depth=2).estimators[0] == ("nb", "drop")
