"""Bad input gets an error that names the culprit and the cure."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression

from damvi import DAMVIClassifier


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda y: np.zeros_like(y), r"only one class \(0, 300 rows\).*stratify"),
        (lambda y: np.full(len(y), "spam"), "only one class .*'spam'"),
        (lambda y: y[:-1], "inconsistent numbers of samples.*300, 299"),
        (lambda y: y + 0.5 * np.arange(len(y)), "continuous"),
        (lambda y: np.where(y == 1, np.nan, 0.0), "NaN"),
    ],
)
@pytest.mark.parametrize("frame", [False, True])
def test_bad_labels(table, labels, message, frame):
    X, y = table
    estimator = LogisticRegression() if frame else None
    X = pd.DataFrame(X, columns=list("abcd")) if frame else X
    with pytest.raises(ValueError, match=message):
        DAMVIClassifier(estimator, n_estimators=2).fit(X, labels(y))


def test_no_labels_at_all(table):
    X, _ = table
    with pytest.raises(ValueError, match="requires y to be passed"):
        DAMVIClassifier().fit(X, None)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_estimators": 0},
        {"n_estimators": 2.5},
        {"max_samples": 0},
        {"max_samples": 0.0},
        {"max_samples": 1.5},
        {"max_samples": -3},
        {"solver": "magic"},
        {"bootstrap": "yes"},
        {"stratified": 2},
        {"reweight": None},
        {"random_state": "seed"},
        {"warm_start": 3},
        {"votes": "oof"},
        {"shrinkage": 1.0},
        {"reweight": -1.0},
        {"unlabeled_weight": 1.0},
    ],
)
def test_bad_parameters_are_named(table, parameters):
    ((name, value),) = parameters.items()
    with pytest.raises(ValueError, match=f"'{name}' parameter.*Got {value!r} instead"):
        DAMVIClassifier(**parameters).fit(*table)


@pytest.mark.parametrize(
    "pool", ["strong", "tree", [], [("linear", LogisticRegression())]], ids=str
)
def test_a_pool_belongs_to_the_other_estimator(table, pool):
    with pytest.raises(ValueError, match=r"estimator=.*damvi\.DAMVIVotingClassifier"):
        DAMVIClassifier(pool).fit(*table)


def test_a_regressor_cannot_vote(table):
    with pytest.raises(ValueError, match=r"LinearRegression\(\) is not a classifier"):
        DAMVIClassifier(LinearRegression()).fit(*table)


def test_more_draws_than_rows_without_replacement(table):
    with pytest.raises(ValueError, match=r"max_samples=301.*300 rows.*bootstrap=True"):
        DAMVIClassifier(max_samples=301, bootstrap=False).fit(*table)


def test_a_pos_label_that_does_not_occur(table):
    with pytest.raises(ValueError, match=r"pos_label=.spam.*which are \[0, 1\]"):
        DAMVIClassifier(pos_label="spam").fit(*table)


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
@pytest.mark.parametrize("estimator", [None, LogisticRegression()])
def test_infinite_values(table, bad, estimator):
    X, y = table
    X = X.copy()
    X[5, 2] = bad
    with pytest.raises(ValueError, match=r"Input X contains infinity"):
        DAMVIClassifier(estimator, n_estimators=2).fit(X, y)
    fitted = DAMVIClassifier(estimator, n_estimators=2).fit(*table)
    with pytest.raises(ValueError, match=r"Input X contains infinity"):
        fitted.predict(X)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(299), r"sample_weight has shape \(299,\), but X has 300 rows"),
        (np.zeros(300), "sample_weight is zero in every row; give some"),
        (np.r_[-1.0, np.ones(299)], r"sample_weight is negative in row 0 \(-1\)"),
        (np.r_[1.0, np.inf, np.ones(298)], "sample_weight is inf at row 1"),
    ],
)
def test_bad_sample_weights(table, weights, message):
    X, y = table
    with pytest.raises(ValueError, match=message):
        DAMVIClassifier(n_estimators=2).fit(X, y, sample_weight=weights)


def test_weights_that_leave_no_positive(table):
    X, y = table
    with pytest.raises(ValueError, match=r"leaves only one class.*both classes"):
        DAMVIClassifier(n_estimators=2).fit(X, y, sample_weight=(y == 0).astype(float))


def test_other_columns_than_at_fit(table):
    X, y = table
    fitted = DAMVIClassifier(n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4 features"):
        fitted.predict(X[:, :3])


@pytest.mark.parametrize("estimator", [None, LogisticRegression()])
def test_columns_of_other_names_than_at_fit(table, estimator):
    X, y = table
    frame = pd.DataFrame(X, columns=list("abcd"))
    fitted = DAMVIClassifier(estimator, n_estimators=2).fit(frame, y)
    for wrong in (frame.rename(columns={"d": "e"}), frame[list("bacd")], frame[["a"]]):
        with pytest.raises(ValueError, match="feature names should match"):
            fitted.predict(wrong)


@pytest.mark.parametrize("method", ["predict", "vote", "decision_function"])
def test_prediction_before_a_fit(table, method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(DAMVIClassifier(), method)(table[0])


def test_a_fit_that_failed_is_no_fit(table):
    model = DAMVIClassifier(max_samples=301, bootstrap=False)
    with pytest.raises(ValueError, match="max_samples"):
        model.fit(*table)
    with pytest.raises(NotFittedError):
        model.predict(table[0])


@pytest.mark.parametrize("estimator", [None, LogisticRegression()])
def test_a_table_without_rows(estimator):
    with pytest.raises(ValueError, match=r"0 sample|0 rows"):
        DAMVIClassifier(estimator).fit(pd.DataFrame({"a": []}), np.array([], dtype=int))


def test_fit_params_need_metadata_routing(table):
    with pytest.raises(ValueError, match="only supported if enable_metadata_routing"):
        DAMVIClassifier(n_estimators=2).fit(*table, margins=np.ones(300))
