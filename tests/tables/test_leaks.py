"""Columns that know too much are dropped or named, and ordinary ones are not."""

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import damvi
from damvi.model import fit_table, parse_metric, prepare
from damvi.tables import too_good
from damvi.tables.checks import suspicious

N = 600
POSITIVE = np.arange(N) % 10 == 0
rng = np.random.default_rng(0)
NOISE = rng.normal(size=N)
DAYS = pd.Series(pd.date_range("2023-01-01", periods=N, freq="19h"))


def table(**columns):
    return pd.DataFrame({"x": NOISE + POSITIVE, **columns, "y": POSITIVE.astype(int)})


def filled(values, where):
    return pd.Series(values).astype(object).where(where, None)


@pytest.mark.parametrize(
    "values",
    [
        DAYS,
        DAYS.dt.strftime("%d.%m.%Y"),
        DAYS.astype(str),
        pd.Series(rng.normal(size=N)),
        pd.Series(rng.choice(["a", "b", "c"], N)),
        pd.Series([f"{x:.2f} €" for x in rng.lognormal(5, 1, N)]),
    ],
    ids=["dates", "German dates", "ISO text", "numbers", "categories", "amounts"],
)
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_what_is_filled_for_positives_alone_is_dropped_loudly(values, share):
    """chargeback_date was used as a date, with an F1 of 1.000 and not a word."""
    where = POSITIVE & (rng.random(N) < share)
    for chargeback in (values.where(where), values.mask(where)):
        frame = table(chargeback=chargeback)
        found = prepare(frame, "y")
        assert [column.name for column in found.schema.used] == ["x"]
        assert any("LEAKAGE: missing values of 'chargeback'" in w for w in found.warnings)
        kept = prepare(frame, "y", keep=["chargeback"])
        assert "chargeback" in [column.name for column in kept.schema.used]
        assert kept.warnings == []


def test_ordinary_gaps_are_no_leak():
    for share in (0.02, 0.5, 0.98):
        frame = table(date=DAYS.mask(rng.random(N) < share))
        frame["more often"] = np.where(
            rng.random(N) < share / (1 + POSITIVE), np.nan, NOISE
        )
        assert prepare(frame, "y").warnings == []


@pytest.mark.parametrize("kind", ["number", "text", "flag", "band"])
def test_a_column_that_nearly_is_the_target_is_named(kind):
    """One that agrees with the target on 99.7 % of the rows passed."""
    agrees = np.where(np.isin(np.arange(N), [50, 301]), ~POSITIVE, POSITIVE)
    columns = {
        "number": agrees * 5 + rng.random(N),
        "text": np.where(agrees, "bad", rng.choice(["ok", "fine"], N)),
        "flag": agrees,
        "band": np.where(agrees, 0.1 * NOISE, 3 + rng.random(N) - 6 * (NOISE > 0)),
    }
    found = prepare(table(late=columns[kind]), "y")
    assert "late" in [column.name for column in found.schema.used]
    [warning] = found.warnings
    assert warning.startswith("LEAKAGE? 'late' alone predicts the class")
    assert prepare(table(late=columns[kind]), "y", keep=["late"]).warnings == []


def test_strong_features_and_few_positives_raise_no_alarm():
    assert prepare(table(strong=3 * POSITIVE + NOISE), "y").warnings == []
    frame = table(late=POSITIVE * 5 + rng.random(N)).iloc[:150]
    assert suspicious(frame[["late"]], frame["y"].to_numpy()) == []  # of 15 positives
    frame = table(one=1.0, gaps=np.nan)
    assert suspicious(frame[["one", "gaps"]], POSITIVE) == []


def test_a_model_too_good_to_be_true_names_the_column_behind_it():
    agrees = np.where(rng.random(N) < 0.03, False, POSITIVE) * 5 + rng.random(N)
    frame = table(late=agrees, day=DAYS)
    found = prepare(frame, "y")
    said = too_good({"F1": 0.7, "AP": 0.995}, found.X, found.y, found.schema)
    assert said.startswith("AP 0.995 is suspiciously high. 'late' alone")
    assert too_good({"F1": 0.98, "AP": 0.985}, found.X, found.y, found.schema) is None
    assert too_good({"F1": 0.99, "AP": 0.995}, found.X, ~found.y, found.schema) is None
    plain = prepare(table(), "y")
    said = too_good({"F1": 1.0}, plain.X, plain.y, plain.schema)
    assert "No single column explains it (the best is 'x'" in said


def test_the_fit_says_so():
    score = POSITIVE * 2.0 + np.random.default_rng(5).random(N)
    found = prepare(table(score=score), "y", keep=["score"])
    pool = [("tree", DecisionTreeClassifier(random_state=0)), ("bayes", GaussianNB())]
    _, comparison = fit_table(found, parse_metric("f1"), pool=pool)
    [doubt] = found.doubts(comparison.figures["DAMVI"])
    assert "is suspiciously high" in doubt
    with pytest.warns(UserWarning, match="'score' alone has an F1 of"):
        damvi.fit(table(score=score), "y", keep=["score"], pool=pool)
