"""From a model and rows kept apart to a certificate that people can read."""

import dataclasses
import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import damvi
from damvi import DAMVIClassifier
from damvi.certificate import Certificate, certify, clopper_pearson, clopper_pearson_upper

from ..conftest import imbalanced


class Wilful(DAMVIClassifier):
    """A model whose decisions do not follow its threshold."""

    def predict(self, X):
        return self.classes_[(self.vote(X) > 0.4).astype(int)]


def fitted(X, y, kind=DAMVIClassifier, **options):
    return kind(n_estimators=15, random_state=0, **options).fit(X, y)


@pytest.fixture(scope="module")
def rows():
    return imbalanced(2000, seed=1)


@pytest.fixture(scope="module")
def model():
    return fitted(*imbalanced(1000, seed=0))


@pytest.fixture(scope="module")
def certificate(model, rows):
    return certify(model, *rows)


def test_the_headline_counts_the_model_s_errors(model, rows, certificate):
    X, y = rows
    flagged = model.predict(X)
    missed, alarms = ((y == 1) & (flagged == 0)).sum(), ((y == 0) & (flagged == 1)).sum()
    for rate, errors, n, delta in (
        (certificate.missed, missed, (y == 1).sum(), 0.025),
        (certificate.false_alarms, alarms, (y == 0).sum(), 0.025),
        (certificate.overall, missed + alarms, len(y), 0.05),
    ):
        assert (rate.errors, rate.rows, rate.seen) == (errors, n, errors / n)
        assert rate.upper == clopper_pearson_upper(errors, n, delta)
        assert (rate.low, rate.high) == clopper_pearson(errors, n, delta)
        assert rate.low < rate.seen < rate.upper < rate.high
        assert not rate.vacuous
    assert certificate.constant_error == y.mean()


def test_the_bounds_are_above_what_was_seen(certificate):
    made = certificate.pac_bayes
    assert made.n_voters == 15
    assert made.threshold == 0
    for bound in (made.twice_gibbs, made.tandem, made.c_bound):
        assert certificate.overall.seen < bound.overall <= 1
        assert certificate.missed.seen < bound.missed <= 1
        assert certificate.false_alarms.seen < bound.false_alarms <= 1


def test_more_confidence_promises_less(model, rows, certificate):
    surer = certify(model, *rows, delta=0.001)
    assert surer.missed.upper > certificate.missed.upper
    assert surer.pac_bayes.tandem.overall > certificate.pac_bayes.tandem.overall


def test_training_rows_are_refused(model):
    X, y = imbalanced(1000, seed=0)
    for part in (slice(None), slice(100, 200)):
        with pytest.raises(ValueError, match="they include training rows"):
            certify(model, X[part], y[part])


def test_duplicates_of_values_only_warn(rows):
    X, y = np.rint(imbalanced(1000, seed=0)[0]), imbalanced(1000, seed=0)[1]
    with pytest.warns(UserWarning, match="Chance can explain that many") as caught:
        certify(fitted(X, y), np.rint(rows[0]), rows[1])
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "kind",
    [np.ndarray.tolist, pd.DataFrame, sparse.csr_array, np.asfortranarray],
)
def test_any_container_is_compared_with_any_other(kind):
    X, y = imbalanced(300, seed=0)
    model = fitted(kind(X), y)
    with pytest.raises(ValueError, match="300 of the 300 rows"):
        certify(model, kind(X), y)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_with_categories(frame, rows):
    def table(X):
        columns = {"a": X[:, 0], "b": X[:, 1]}
        columns["c"] = np.array(["low", "high"])[(X[:, 2] > 0).astype(int)]
        made = frame(columns)
        if frame is pd.DataFrame:
            return made.astype({"c": "category"})
        return made.with_columns(pl.col("c").cast(pl.Categorical))

    X, y = imbalanced(500, seed=0)
    model = fitted(table(X), y)
    assert certify(model, table(rows[0]), rows[1]).overall.rows == 2000
    with pytest.raises(ValueError, match="500 of the 500 rows"):
        certify(model, table(X), y)


def test_a_model_from_a_file_still_knows_its_rows(model, rows, certificate):
    again = pickle.loads(pickle.dumps(model))
    assert certify(again, *rows) == certificate
    with pytest.raises(ValueError, match="training rows"):
        certify(again, *imbalanced(1000, seed=0))


def test_voters_added_later_keep_the_rows(rows):
    X, y = imbalanced(500, seed=0)
    model = DAMVIClassifier(n_estimators=5, random_state=0, warm_start=True).fit(X, y)
    model.set_params(n_estimators=8).fit(X, y)
    with pytest.raises(ValueError, match="500 of the 500 rows"):
        certify(model, X, y)
    assert certify(model, *rows).pac_bayes.n_voters == 8


def test_labels_of_any_kind(model, rows, certificate):
    X, y = imbalanced(1000, seed=0)
    # The positive class comes first in order here.
    names = np.array(["ok", "fraud"])
    named = certify(fitted(X, names[y]), rows[0], pd.Series(names[rows[1]]))
    assert named.labels == ("ok", "fraud")
    assert named.pos_label == "fraud"
    assert (named.missed, named.false_alarms) == (
        certificate.missed,
        certificate.false_alarms,
    )
    assert named.pac_bayes == certificate.pac_bayes
    assert "'fraud' missed" in str(named)


def test_strange_labels_are_refused(model, rows):
    with pytest.raises(ValueError, match=r"y contains 2, which is not a label.*\[0, 1\]"):
        certify(model, rows[0], rows[1] + 1)
    with pytest.raises(ValueError, match="is not a label of the model"):
        certify(model, rows[0], rows[1].astype(str))


def test_rows_and_labels_must_match(model, rows):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        certify(model, rows[0], rows[1][:-1])


def test_weights_are_not_taken(model, rows):
    with pytest.raises(TypeError, match="sample_weight"):
        certify(model, *rows, sample_weight=np.ones(2000))


@pytest.mark.parametrize("delta", [0, 1, -0.1])
def test_delta_must_be_a_chance(model, rows, delta):
    with pytest.raises(ValueError, match="must be strictly between 0 and 1"):
        certify(model, *rows, delta=delta)


def test_other_models_are_refused(rows):
    with pytest.raises(NotFittedError):
        certify(DAMVIClassifier(), *rows)
    forest = RandomForestClassifier(3, random_state=0).fit(*imbalanced(100, seed=0))
    with pytest.raises(TypeError, match="not RandomForestClassifier"):
        certify(forest, *rows)


def test_one_positive_says_next_to_nothing_of_misses(model, rows):
    X, y = rows
    keep = np.concatenate([np.flatnonzero(y == 1)[:1], np.flatnonzero(y == 0)])
    found = certify(model, X[keep], y[keep])
    assert found.missed.rows == 1
    assert found.missed.upper >= 0.975
    assert found.missed.vacuous
    assert found.false_alarms.vacuous
    assert found.overall.vacuous


def test_no_positive_says_nothing_of_misses(model, rows):
    X, y = rows
    found = certify(model, X[y == 0], y[y == 0])
    assert (found.missed.rows, found.missed.seen, found.missed.upper) == (0, None, 1)
    assert found.missed.vacuous
    assert found.overall.vacuous
    assert found.pac_bayes.tandem.missed == 1
    assert "100.0%" in str(found)
    json.dumps(found.as_dict(), allow_nan=False)


def test_no_negative_works_as_well(model, rows):
    X, y = rows
    found = certify(model, X[y == 1], y[y == 1])
    assert (found.false_alarms.rows, found.false_alarms.upper) == (0, 1)
    assert "Always flagging" in str(found)


@pytest.mark.parametrize("names", [["no", "yes"], ["yes", "no"]])
def test_a_threshold_is_part_of_the_certificate(rows, names):
    names = np.array(names)
    X, y = imbalanced(1000, seed=0)
    model = fitted(X, names[y], threshold=-0.3)
    found = certify(model, rows[0], names[rows[1]])
    assert found.pac_bayes.threshold == -0.3
    assert "1/16" in found.pac_bayes.prior
    assert "threshold -0.3" in str(found)
    assert found.missed.errors == (model.vote(rows[0])[rows[1] == 1] <= -0.3).sum()


def test_decisions_that_do_not_follow_one_threshold_have_no_pac_bayes_bounds(rows):
    model = fitted(*imbalanced(1000, seed=0))
    model.threshold_ = np.linspace(-0.5, 0.5, 2000)  # a threshold for each row
    found = certify(model, *rows)
    assert found.pac_bayes is None
    assert "No PAC-Bayes bounds" in str(found)
    assert found.missed.upper < 1
    json.dumps(found.as_dict())
    wilful = fitted(*imbalanced(1000, seed=0), Wilful)
    assert certify(wilful, *rows).pac_bayes is None


def test_voters_of_any_kind(rows):
    model = fitted(*imbalanced(1000, seed=0), estimator=LogisticRegression())
    found = certify(model, *rows)
    assert found.pac_bayes.tandem.overall < 1


def test_the_page_is_short_and_says_what_matters(certificate):
    page = str(certificate)
    lines = page.splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 80
    assert "95% confidence" in lines[0]
    for words in (
        "not on F1 or average precision",
        "rows not used before to train",
        "not used to train the voters",
        "rows drawn like these",
        "prior uniform, 1/15 each; KL",
    ):
        assert words in page
    first, second = page.index("1 missed"), page.index("PAC-Bayes")
    assert first < second


def test_vacuous_bounds_are_called_so(certificate):
    bound = dataclasses.replace(certificate.pac_bayes.tandem, vacuous_overall=True)
    made = dataclasses.replace(certificate.pac_bayes, tandem=bound)
    page = str(dataclasses.replace(certificate, pac_bayes=made))
    assert any("tandem" in line and "vacuous (" in line for line in page.splitlines())


def test_a_certificate_is_plain_data(certificate):
    again = json.loads(json.dumps(certificate.as_dict(), allow_nan=False))
    assert again["missed_by_class"][1]["seen"] == certificate.missed.seen
    assert again["pac_bayes"]["tandem"]["overall"] == certificate.pac_bayes.tandem.overall
    assert type(certificate.pac_bayes.tandem.vacuous_overall) is bool
    with pytest.raises(dataclasses.FrozenInstanceError):
        certificate.delta = 0.5


def test_the_names_are_public():
    assert damvi.certificate.certify is certify
    assert damvi.certificate.Certificate is Certificate
