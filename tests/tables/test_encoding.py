"""Columns of very many values and free text, and the reader as a transformer."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import damvi
from damvi.cli import main
from damvi.cli.export import write
from damvi.tables import Schema, TableEncoder

SECRET = "zanzibar"
WORDS = [
    "pump",
    "valve",
    "oil",
    "seal",
    "motor",
    "shaft",
    "routine",
    "check",
    "was",
    "done",
]


def rows(n, seed, n_levels=400):
    """Some shops, and notes that speak of a leak, have positives."""
    rng = np.random.default_rng(seed)
    shop = rng.integers(0, n_levels, n)
    leak = rng.random(n) < 0.1
    notes = [" ".join(rng.choice(WORDS, 7)) for _ in range(n)]
    notes = [f"{SECRET} leak {notes[i]}" if leak[i] else notes[i] for i in range(n)]
    chance = np.where(leak, 0.6, np.where(shop % 20 == 0, 0.7, 0.02))
    return pd.DataFrame(
        {
            "shop": [f"{SECRET} {number}" for number in shop],
            "note": notes,
            "size": rng.normal(size=n),
            "fraud": np.where(rng.random(n) < chance, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def table():
    return rows(2000, 0)


def test_what_was_dropped_is_used(table):
    schema = Schema.infer(table, "fraud")
    assert {c.name: c.kind for c in schema.columns} == {
        "shop": "levels",
        "note": "text",
        "size": "number",
    }
    assert schema.features[:4] == [
        "shop",
        "shop (frequency)",
        "note (text 1)",
        "note (text 2)",
    ]


def test_rows_are_encoded_alike_in_any_part_and_again(table):
    schema = Schema.infer(table, "fraud")
    whole = schema.encode(table)
    parts = [table.iloc[:3], table.iloc[3:]]
    parts = [schema.encode(part.reset_index(drop=True)) for part in parts]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole)
    again = Schema.from_dict(schema.as_dict(), schema.encoders)
    assert again == schema
    pd.testing.assert_frame_equal(again.encode(table), whole)
    as_categories = table.astype({"shop": "category", "note": "category"})
    pd.testing.assert_frame_equal(schema.encode(as_categories), whole)


def test_new_and_missing_levels(table):
    table = table.assign(shop=table["shop"].where(table.index != 7, "came once"))
    schema = Schema.infer(table, "fraud")
    often = table["shop"].mode()[0]
    new = table.head(5).assign(shop=["came once", "never seen", None, "", often])
    found = schema.encode(new)
    assert found["shop"].isna().tolist() == [False, False, True, True, False]
    assert found["shop"].tolist()[1] == 0
    count = (table["shop"] == often).sum()
    expected = [0, 0, np.nan, np.nan, np.log(count)]
    np.testing.assert_allclose(found["shop (frequency)"], expected)


def test_ids_are_no_levels_and_are_text_only_if_kept():
    rng = np.random.default_rng(0)
    ids = [f"{number:08x}" for number in rng.integers(0, 2**31, 500)]
    frame = pd.DataFrame({"id": ids, "near": [*ids[:-5], *ids[:5]], "y": [0, 1] * 250})
    schema = Schema.infer(frame, "y")
    assert [c.kind for c in schema.columns] == ["dropped", "dropped"]
    assert "nearly every row" in schema.columns[1].reason
    kept = Schema.infer(frame, "y", keep=["id", "near"])
    assert [c.kind for c in kept.columns] == ["text", "levels"]


def test_parts_whose_names_are_taken_are_left_out(table):
    frame = table.assign(**{"note (text 2)": table["size"], "shop (frequency)": 2.0})
    frame.loc[0, "shop (frequency)"] = 1.0
    features = Schema.infer(frame, "fraud").features
    assert len(set(features)) == len(features)
    assert Schema.infer(frame, "fraud").encode(frame).columns.tolist() == features


@pytest.mark.parametrize("break_it", ["kind", "encoder", "parts"])
def test_a_schema_that_does_not_fit_its_encoders_is_refused(table, break_it):
    schema = Schema.infer(table, "fraud")
    state, encoders = schema.as_dict(), dict(schema.encoders)
    if break_it == "kind":
        state["columns"][0]["kind"] = "number"
    elif break_it == "encoder":
        encoders["shop"] = encoders["note"]
    else:
        state["columns"][1]["parts"] = ("text 31",)
    with pytest.raises(ValueError, match=r"schema column .* has"):
        Schema.from_dict(state, encoders)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_trees_of_a_table_use_them_and_their_file_holds_no_text(tmp_path, n_classes):
    table = rows(2000, 0)
    if n_classes == 3:
        table.loc[table["size"] > 1, "fraud"] = "maybe"
    table.to_csv(tmp_path / "table.csv", index=False)
    path = tmp_path / "model.damvi"
    asked = ["fit", str(tmp_path / "table.csv"), "--target", "fraud", "--pool", "trees"]
    main([*asked, "--quiet", "-o", str(path)], standalone_mode=False)
    content = path.read_bytes() + path.with_suffix(".scores.json").read_bytes()
    assert SECRET.encode() not in content
    again = damvi.load(path)
    fresh = rows(1000, 1)
    vote = again.classifier.vote(again.schema.encode(fresh))
    if n_classes == 2:
        assert average_precision_score(fresh["fraud"] == "yes", vote) > 0.3
    with pytest.raises(ValueError, match="--drop shop --drop note"):
        write(again, "sklearn", tmp_path / "exported")


# The transformer.


@pytest.mark.slow
def test_the_transformer_gives_what_the_schema_gives(table):
    X = table.drop(columns="fraud")
    encoder = TableEncoder(drop=["size"])
    made = clone(encoder).fit(X).transform(X)
    pd.testing.assert_frame_equal(made, Schema.infer(X, "", drop=["size"]).encode(X))
    assert made.columns.tolist() == encoder.fit(X).get_feature_names_out().tolist()
    shuffled = X.sample(frac=1, random_state=0)
    pd.testing.assert_frame_equal(encoder.transform(shuffled), made.loc[shuffled.index])
    from_polars = clone(encoder).fit(pl.from_pandas(X)).transform(pl.from_pandas(X))
    pd.testing.assert_frame_equal(from_polars, made)
    numbers = TableEncoder(categories="number").set_output(transform="polars")
    assert isinstance(numbers.fit_transform(X), pl.DataFrame)


def test_the_transformer_goes_into_any_pipeline(table):
    X, y = table.drop(columns="fraud"), table["fraud"] == "yes"
    booster = HistGradientBoostingClassifier(max_iter=10, random_state=0)
    pipeline = make_pipeline(TableEncoder(categories="number"), booster).fit(X, y)
    assert pipeline.score(X, y) > y.mean()
    assert pipeline[:-1].get_feature_names_out()[0] == "shop"


@pytest.mark.parametrize(
    ("encoder", "X", "message"),
    [
        (TableEncoder(keep=["b"]), pd.DataFrame({"a": [1, 2]}), "no column 'b'"),
        (TableEncoder(categories="no"), pd.DataFrame({"a": [1, 2]}), "use 'category'"),
        (TableEncoder(), pd.DataFrame({"a": [1, 1]}), "no usable column in X"),
        (TableEncoder(), pd.DataFrame({"a": []}), "X has 0 rows"),
    ],
)
def test_what_cannot_be_is_said(encoder, X, message):
    with pytest.raises(ValueError, match=message):
        encoder.fit(X)


@parametrize_with_checks([TableEncoder(categories="number")])
def test_scikit_learns_checks(estimator, check):
    check(estimator)
