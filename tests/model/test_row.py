"""One row: the answer of a table of this row, to the last bit, from raw values."""

import json
import math
import pickle
from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

import damvi
from damvi.model.row import RowPredictor
from damvi.tables.row import RowEncoder
from damvi.voters import (
    CategoryBoostingClassifier,
    FastForestClassifier,
    NumberEncoder,
    RateEncoder,
)
from damvi.voters.columns import PairColumns, RankSplines, scaled_table

from .tables import as_json, mixed

ODD = [None, math.nan, math.inf, -math.inf, "", " ", "?", "n/a", "12", "-3.5", "+4", "1e3"]
ODD += ["1e999", "1,5", "1.234,50 €", "$5", "(7)", " 8 ", "٣", "new", True, False, 3, 0, -2]
ODD += [2**70, 1.0, 2.5, "1", "1.0", np.float64(2.5), np.int64(3), np.float32(0.1)]
ODD += ["2023-02-30", "2023-05-06", "2023-05-06T07:08:09Z", "2023-05-06 07:08:09.123"]
ODD += ["2023-5-6", "1823-05-06", "06.05.2023", "6.5.2023", "31.12.23", "25:00", "07:45"]
ODD += [1_700_000_000, "17000", datetime(2023, 5, 6, 7), date(2023, 5, 6)]
ODD += [pd.Timestamp("2023-05-06 07:08", tz="Europe/Paris"), pd.NaT, pd.NA]
ODD += ["the pump leaks oil", "a" * 3000, "höher ∑ 年"]


@pytest.fixture(scope="module")
def table():
    return mixed()


def fitted(table, pool, **options):
    return damvi.fit(table, "late", pool=pool, shuffle=True, random_state=0, **options)


@pytest.fixture(scope="module")
def trees(table):
    return fitted(table, "trees")


def pool_like_the_strong_one():
    """Its voters in small, one that is asked in its own way, and one that is linear."""
    from lightgbm import LGBMClassifier

    few = {"n_estimators": 9, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}
    steps = {
        "lightgbm": [NumberEncoder(), LGBMClassifier(**few)],
        "pairs": [NumberEncoder(), PairColumns(), LGBMClassifier(**few)],
        "forest": [FastForestClassifier(9, balanced=True, random_state=0)],
        "splines": [scaled_table(RankSplines()), LogisticRegression(max_iter=500)],
        "other": [scaled_table(), GaussianNB()],
        "boosting": [NumberEncoder(), HistGradientBoostingClassifier(max_iter=9)],
    }
    return [(name, make_pipeline(RateEncoder(), *own)) for name, own in steps.items()]


@pytest.fixture(scope="module")
def pool(table):
    # All have weight: what has none is not asked, here as there.
    model = fitted(table, pool_like_the_strong_one())
    model.classifier.weights_ = np.full(6, 1 / 6)
    return model


def both(model, row):
    return model.predict_row(row), model.predict(pd.DataFrame([row])).iloc[0].to_dict()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::damvi.drift.DriftWarning")
@pytest.mark.parametrize("name", ["trees", "pool"])
def test_rows_of_the_table(table, name, request):
    model = request.getfixturevalue(name)
    kinds = {column.name: column.kind for column in model.schema.used}
    assert {*kinds.values()} == {"number", "category", "levels", "text", "date"}
    for row in as_json(table.iloc[:15]):
        told, expected = both(model, row)
        assert told == expected
    assert [*told] == ["score", "probability", "decision"]
    assert json.loads(json.dumps(told)) == told


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::damvi.drift.DriftWarning")
@pytest.mark.parametrize("column", range(11))
def test_odd_values_mean_what_they_mean_in_a_table(table, trees, column):
    row = as_json(table.iloc[:1])[0]
    name, encode = list(row)[column], RowEncoder(trees.schema)
    for value in ODD:
        changed = row | {name: value}
        try:
            expected = trees.schema.encode(pd.DataFrame([changed]))
        except (ValueError, TypeError):
            with pytest.raises((ValueError, TypeError)):
                encode(changed)
            continue
        cells = encode(changed)
        wanted = [
            column.cat.codes if hasattr(column, "cat") else column
            for _, column in expected.items()
        ]
        wanted = np.array([one.iat[0] for one in wanted], dtype=np.float64)
        np.testing.assert_array_equal(cells[0], wanted, err_msg=f"{name}: {value!r}")


def test_what_is_missing_and_what_is_no_value_is_named(table, trees):
    row = as_json(table.iloc[:1])[0]
    with pytest.raises(ValueError, match="columns are missing: 'size' and 'opened'"):
        trees.predict_row({k: v for k, v in row.items() if k not in ("size", "opened")})
    for name in ("size", "shop", "opened"):
        with pytest.raises(ValueError, match=f"column '{name}' holds a list; pass one"):
            trees.predict_row(row | {name: [1, 2]})
    more = trees.predict_row({"more": {"beside": 1}} | row)
    assert more == trees.predict_row(row)


def test_it_follows_the_model(table, trees):
    row = as_json(table.iloc[:1])[0]
    model = pickle.loads(pickle.dumps(trees))
    assert "_row" not in vars(model)
    before = model.predict_row(row)
    assert before == trees.predict_row(row)
    model.classifier.weights_ = np.eye(len(model.classifier.weights_))[0]
    after, expected = both(model, row)
    assert after == expected
    assert after != before
    model.classifier.threshold_ = after["score"] - 0.1
    assert model.predict_row(row)["decision"] == "yes"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["trees", "pool"])
def test_three_classes_and_labels_that_are_numbers(table, kind):
    from lightgbm import LGBMClassifier

    few = table[["size", "grade", "amount"]]
    size = few["size"].fillna(0) + np.random.default_rng(1).normal(size=len(few))
    frame = few.assign(state=np.digitize(size, [0.0, 1.0]) * 10)
    small = LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1)
    pool = [
        ("lightgbm", make_pipeline(NumberEncoder(), small)),
        ("forest", FastForestClassifier(9, random_state=0)),
    ]
    chosen = "trees" if kind == "trees" else pool
    model = damvi.fit(frame, "state", pool=chosen, shuffle=True, random_state=0)
    for row in as_json(few.iloc[:20]):
        told, expected = both(model, row)
        assert told == expected
        assert type(told["decision"]) is int
    assert [*told][:2] == ["decision", "probability 0"]


@pytest.mark.slow
def test_the_strong_pool(table):
    model = fitted(table, "strong")
    n_voters = len(model.classifier.weights_)
    model.classifier.weights_ = np.full(n_voters, 1 / n_voters)
    assert "spline_linear" in model.classifier.voters_.names
    ask = RowPredictor(model)
    assert all(takes_cells for _, takes_cells, _ in ask.vote.voters)
    for row in as_json(table.iloc[:30]):
        told, expected = both(model, row)
        assert told == expected


@pytest.mark.filterwarnings("ignore::damvi.drift.DriftWarning")
def test_catboost_on_categories(table):
    pytest.importorskip("catboost")
    pool = [("catboost", CategoryBoostingClassifier(50))]
    model = fitted(table[["size", "grade", "late"]], pool)
    ask = RowPredictor(model)
    assert all(takes_cells for _, takes_cells, _ in ask.vote.voters)
    rows = as_json(table[["size", "grade"]].iloc[:30])
    for row in [*rows, *({"size": 1.5, "grade": odd} for odd in ("never seen", None))]:
        told, expected = both(model, row)
        assert told == expected


def test_what_is_no_row():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=200), "y": np.arange(200) % 4 == 0})
    model = damvi.fit(table, "y", pool="trees")
    for given in ([1, 2], None, 5, [{"a": 1.0}]):
        with pytest.raises(TypeError, match="a row must be a dictionary"):
            model.predict_row(given)
    with pytest.raises(ValueError, match="the table has no columns"):
        model.predict_row({})
