"""What is inferred of columns, and that the encoding is the same at fit and later."""

import json

import numpy as np
import pandas as pd
import pytest

from damvi.tables import Schema, read_blocks, read_table
from damvi.tables.schema import OTHER
from damvi.tables.values import in_words

N = 200


def infer(values, name="x", positive=None, **options):
    frame = pd.DataFrame({name: values, "y": np.arange(len(values)) % 2})
    return Schema.infer(frame, "y", positive, **options).columns[0]


rng = np.random.default_rng(0)
NUMBERS = rng.normal(size=N)


@pytest.mark.parametrize(
    ("values", "kind", "reason"),
    [
        (NUMBERS, "number", ""),
        (np.where(NUMBERS > 1, np.inf, NUMBERS), "number", "infinite"),
        (rng.integers(0, 5, N), "number", ""),
        (NUMBERS > 0, "number", ""),
        ([f"{x:,.2f}" for x in NUMBERS * 1e6], "number", "thousands"),
        ([f"{x:.2f}%" for x in NUMBERS], "number", "percent"),
        ([f"${abs(x):.2f}" for x in NUMBERS], "number", ""),
        ([f"{x:.3f}".replace(".", ",") for x in NUMBERS * 10], "number", "points"),
        ([f" {x:.2f} " if x < 1 else "?" for x in NUMBERS], "number", "'?' counts as"),
        ([f"{x:.4f}" for x in NUMBERS[:-1]] + ["broken"], "number", "1 non-numbers"),
        (["yes" if x > 0 else "no" for x in NUMBERS], "category", "2 categories"),
        ([f"0{i % 7}" for i in range(N)], "category", "7 categories"),
        (["12%", "0.12"] * (N // 2), "category", "2 categories"),
        (range(N), "dropped", "id"),
        (rng.permutation(N) + 1000, "dropped", "id"),
        ([f"user{i}" for i in range(N)], "dropped", "unique in each row"),
        ([7] * N, "dropped", "constant"),
        (["same"] * N, "dropped", "constant"),
        ([None] * N, "dropped", "no value"),
        ([np.nan] * N, "dropped", "no value"),
        ([""] * N, "dropped", "no value"),
        (["", "a", "b", "a"] * (N // 4), "category", "2 categories"),
        ([np.inf] * N, "dropped", "no finite"),
        (["some words that differ", f"{1}"] * (N // 2), "category", "2"),
        ([[1, 2]] * N, "dropped", "lists or records"),
        ([f"{i // 2} is a text of words" for i in range(N * 2)], "text", "free text"),
        (pd.date_range("2024-01-01", periods=N), "date", "a date: day of month, weekday"),
        (pd.date_range("2022-01-01", periods=N, freq="3D"), "date", "month, day of month"),
        (pd.date_range("2024-01-01", periods=N, freq="min"), "dropped", "too short"),
        (pd.date_range("2024-01-01", periods=N, freq="h").astype(str), "date", "hour"),
        ([f"{i % 28 + 1:02}/03/2024" for i in range(N)], "date", "day/month/year"),
        ([f"03/{i % 28 + 1:02}/2024" for i in range(N)], "date", "month/day/year"),
        ([f"{i % 24}:{i % 60:02}" for i in range(N)], "date", "a time: hour"),
        ([f"{1 + i % 12}:{i % 60:02} PM" for i in range(N)], "date", "minute AM/PM"),
        (pd.to_timedelta(np.arange(N) % 9, unit="h"), "number", ""),
        (pd.Categorical(list("ab") * (N // 2)), "category", "2 categories"),
    ],
)
def test_kinds(values, kind, reason):
    column = infer(values)
    assert column.kind == kind, column
    assert reason in column.reason


def test_ids_are_known_by_name_even_if_shuffled_and_sparse():
    values = rng.permutation(N) * 17 + 3
    assert infer(values, "customer_id").kind == "dropped"
    assert infer(values, "amount").kind == "number"
    assert infer(values, "customer_id", keep=["customer_id"]).kind == "number"


def test_rare_categories_share_a_place():
    values = ["often"] * 3000 + [f"c{i % 150}" for i in range(600)]
    frame = pd.DataFrame({"x": values, "y": 0})
    schema = Schema.infer(frame, "y")
    assert schema.columns[0].categories == ("often", OTHER)
    new = pd.DataFrame({"x": ["often", "c3", "never seen", None]})
    assert schema.encode(new)["x"].tolist()[:3] == ["often", OTHER, OTHER]
    assert schema.encode(new)["x"].isna().tolist() == [False, False, False, True]


def test_the_target_in_disguise():
    positive = np.arange(N) % 5 == 0
    for copy in (positive, np.where(positive, "bad", "ok"), np.where(positive, 3.0, -1)):
        column = infer(copy, positive=positive)
        assert column.kind == "dropped"
        assert "EQUALS THE TARGET" in column.reason
        assert infer(copy, positive=positive, keep=["x"]).kind != "dropped"
    only_then = np.where(positive, 3.5, np.nan)
    assert "EQUALS" in infer(only_then, positive=positive).reason
    score = np.where(positive, 10.0, 0.0) + rng.random(N)
    column = infer(score, positive=positive)
    assert column.kind == "number"
    assert "ALONE" in column.reason
    almost = score.copy()
    almost[0] = 0.5
    assert infer(almost, positive=positive).reason == ""


def messy():
    rng = np.random.default_rng(1)
    when = pd.date_range("2023-05-01", periods=N, freq="5h").astype(str).to_series()
    return pd.DataFrame(
        {
            "amount": [f"{x:,.2f}" for x in NUMBERS * 1e5],
            "when": when.to_numpy(),
            "kind": rng.choice(["a", "b", "NA"], N),
            "n": rng.integers(0, 9, N),
            "y": rng.integers(0, 2, N),
        }
    )


def test_json_and_back():
    schema = Schema.infer(messy(), "y")
    again = Schema.from_dict(json.loads(json.dumps(schema.as_dict())))
    assert again == schema
    pd.testing.assert_frame_equal(again.encode(messy()), schema.encode(messy()))


def test_order_extra_columns_and_types_do_not_matter():
    frame = messy()
    schema = Schema.infer(frame, "y")
    expected = schema.encode(frame)
    assert expected.columns.tolist() == [
        "amount",
        "when (weekday)",
        "when (hour)",
        "kind",
        "n",
    ]
    other = frame[["y", "n", "kind", "when", "amount"]].assign(more=1)
    other["when"] = pd.to_datetime(other["when"])
    other["n"] = other["n"].astype("Int64").astype(str)
    pd.testing.assert_frame_equal(schema.encode(other), expected)
    first = expected.iloc[0]
    stamp = pd.Timestamp(frame["when"].iloc[0])
    assert first["when (weekday)"] == stamp.day_of_week
    assert expected["when (hour)"].tolist()[:3] == [0, 5, 10]


def test_new_gaps_and_new_categories_count_as_missing():
    schema = Schema.infer(messy(), "y")
    new = pd.DataFrame(
        {
            "amount": ["x", None],
            "when": ["soon", None],
            "kind": ["zzz", None],
            "n": [np.inf] * 2,
        }
    )
    assert schema.encode(new).isna().all().all()


def test_an_empty_block_and_missing_columns():
    schema = Schema.infer(messy(), "y")
    assert len(schema.encode(messy().iloc[:0])) == 0
    with pytest.raises(ValueError, match="column is missing: 'kind'"):
        schema.encode(messy().drop(columns="kind"))


def test_empty_text_is_missing_as_it_is_in_a_csv():
    frame = pd.DataFrame({"x": ["a", "", "b", None] * 50, "y": [0, 1] * 100})
    many = pd.DataFrame({"x": [f"c{i % 150}" for i in range(3000)], "y": [0, 1] * 1500})
    for schema in (Schema.infer(frame, "y"), Schema.infer(many, "y")):
        encoded = schema.encode(pd.DataFrame({"x": ["", None, "a", "c1"]}))["x"]
        assert encoded.isna().tolist()[:2] == [True, True]
        assert encoded.notna().any()


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%d"])
def test_iso_dates_are_known_whatever_the_fit_had(form):
    days = pd.Series(pd.date_range("2024-01-01", periods=N))
    frame = pd.DataFrame({"d": days.dt.strftime(form), "y": [0, 1] * (N // 2)})
    schema = Schema.infer(frame, "y")
    expected = schema.encode(frame)
    assert expected.notna().all(axis=None)
    iso = days.dt.strftime("%Y-%m-%d")
    mixed = iso.where(days.dt.day > 9, frame["d"])
    for written in (iso, mixed, days):
        found = schema.encode(pd.DataFrame({"d": written}))
        pd.testing.assert_frame_equal(found, expected)
    assert schema.encode(pd.DataFrame({"d": ["soon", None]})).isna().all(axis=None)


def test_a_part_of_a_date_gives_way_to_a_column_of_its_name():
    days = pd.date_range("2024-01-01", periods=N).strftime("%Y-%m-%d")
    frame = pd.DataFrame({"d": days, "d (weekday)": NUMBERS, "y": [0, 1] * (N // 2)})
    schema = Schema.infer(frame, "y")
    assert schema.features == ["d (day of month)", "d (weekday)"]
    assert schema.columns[0].reason == "a date: day of month"
    assert list(schema.encode(frame).columns) == schema.features
    np.testing.assert_array_equal(schema.encode(frame)["d (weekday)"], NUMBERS)
    frame["d (day of month)"] = NUMBERS
    schema = Schema.infer(frame, "y")
    assert schema.columns[0].reason == "a date whose parts are already columns"
    assert schema.encode(frame).shape == (N, 2)


def test_a_date_gives_what_comes_again_and_never_the_day_itself_unless_kept():
    days = pd.Series(pd.date_range("2021-03-01", periods=N, freq="127h"))
    frame = pd.DataFrame({"d": days.astype(str), "y": [0, 1] * (N // 2)})
    encoded = Schema.infer(frame, "y").encode(frame)
    parts = {
        "d (month)": days.dt.month,
        "d (day of month)": days.dt.day,
        "d (weekday)": days.dt.day_of_week,
        "d (hour)": days.dt.hour,
    }
    assert list(encoded.columns) == list(parts)
    for name, expected in parts.items():
        np.testing.assert_array_equal(encoded[name], expected)
    kept = Schema.infer(frame, "y", keep=["d"]).encode(frame)
    since = (days - pd.Timestamp(0)).dt.days
    np.testing.assert_array_equal(kept["d (day)"], since)


def test_days_between_dates():
    rng = np.random.default_rng(3)
    start = pd.Series(pd.date_range("2024-01-01", periods=N, freq="h"))
    took = rng.integers(1, 90, N)
    end = (start + pd.to_timedelta(took, unit="D")).dt.strftime("%d.%m.%Y %H:%M")
    end[5] = None
    frame = pd.DataFrame({"opened": start, "copy": start, "closed": end, "at": "09:30"})
    frame["y"] = [0, 1] * (N // 2)
    schema = Schema.infer(frame, "y")
    encoded = schema.encode(frame)
    assert "closed (days since opened)" in encoded
    assert not any("copy (days" in name for name in encoded)  # the same day in every row
    days = encoded["closed (days since opened)"]
    np.testing.assert_allclose(days.drop(5), np.delete(took, 5))
    assert np.isnan(days[5])
    again = Schema.from_dict(json.loads(json.dumps(schema.as_dict())))
    pd.testing.assert_frame_equal(again.encode(frame), encoded)
    # A date that is good for nothing but to count from is asked for at prediction.
    with pytest.raises(ValueError, match="'opened'"):
        schema.encode(frame.drop(columns="opened"))


@pytest.mark.parametrize(
    "change",
    [{"parts": ["year"]}, {"parts": ["days since nothing"]}, {"kind": "odd"}],
)
def test_a_schema_of_a_file_that_cannot_be(change):
    state = Schema.infer(messy(), "y").as_dict()
    state["columns"][1] |= change
    with pytest.raises(ValueError, match="schema column 'when'"):
        Schema.from_dict(state)


WHEN = pd.Series(pd.date_range("2023-01-02 13:00", periods=N, freq="47h"))
FORMS = ["%d/%m/%y", "%B %d, %Y", "%Y%m%d", "%d-%b-%y", "%m/%d/%Y %I:%M %p", "%d %B %Y"]
FORMS += ["%d/%m/%Y %Hh%M", "%d %b %Y, %H:%M", "%m/%d/%Y, %I:%M:%S %p"]


@pytest.mark.parametrize(
    "texts",
    [
        *[WHEN.dt.strftime(form) for form in FORMS],
        WHEN.dt.strftime("%Y%m%d").astype(int),
        (WHEN - pd.Timestamp(0)) // pd.Timedelta("1s"),
        (WHEN - pd.Timestamp(0)) // pd.Timedelta("1ms"),
        pd.Series([f"{t.year}年{t.month}月{t.day}日" for t in WHEN]),
    ],
    ids=[*FORMS, "digits", "seconds", "milliseconds", "Japanese"],
)
def test_dates_that_people_write(texts, tmp_path):
    frame = pd.DataFrame({"d": texts, "y": np.arange(N) % 2})
    schema = Schema.infer(frame, "y")
    assert schema.columns[0].kind == "date"
    assert schema.columns[0].doubt == ""
    encoded = schema.encode(frame)
    np.testing.assert_array_equal(encoded["d (month)"], WHEN.dt.month)
    np.testing.assert_array_equal(encoded["d (day of month)"], WHEN.dt.day)
    frame.loc[5, "d"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    [block] = read_blocks(tmp_path / "t.csv", schema)
    assert block().X.loc[5].isna().all()
    pd.testing.assert_frame_equal(block().X.drop(5), encoded.drop(5))


def test_a_day_that_may_be_the_month_is_named():
    texts = [f"{1 + i % 12:02}/{1 + i % 11:02}/2024" for i in range(N)]
    column = infer(texts)
    assert "day/month/year, but could be month/day/year" in column.doubt
    assert infer([*texts[:-1], "25/12/2024"]).doubt == ""


def test_dates_of_a_spreadsheet_beside_typed_ones():
    days = pd.Series(pd.date_range("2023-01-01", periods=N, freq="9D"))
    mixed = days.astype(object)
    mixed[::7] = days[::7].dt.strftime("%d/%m/%Y")
    frame = pd.DataFrame({"d": mixed, "y": np.arange(N) % 2})
    schema = Schema.infer(frame, "y")
    assert schema.columns[0].kind == "date"
    np.testing.assert_array_equal(schema.encode(frame)["d (day of month)"], days.dt.day)


def test_what_is_no_date_among_dates_is_named():
    dates = pd.date_range("2023-01-01", periods=300).strftime("%Y-%m-%d")
    column = infer([*dates, "0000-00-00", "0000-00-00", "", None])
    assert column.kind == "date"
    assert column.doubt == "2 non-dates such as '0000-00-00' count as missing"


def test_numbers_that_are_no_dates():
    assert infer(np.arange(N) * 7 + 1_200_000_000, "customer_id").kind == "dropped"
    assert infer(rng.integers(10**7, 10**8, N)).kind == "number"
    assert infer(rng.integers(10**9, 10**10, N)).kind == "number"


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_missing_dates_and_durations_are_missing(tmp_path, zone):
    """NaT is no number: numpy has -9e18 for it."""
    dates = pd.Series(pd.date_range("2024-01-01", periods=N, freq="7h", tz=zone))
    dates[3] = pd.NaT
    frame = pd.DataFrame({"when": dates, "wait": dates - dates[0], "y": np.arange(N) % 2})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    for name in ("t.parquet", "t.csv"):
        read = read_table(tmp_path / name)
        encoded = Schema.infer(read, "y", keep=["when", "wait"]).encode(read)
        assert ("wait" in encoded) == (name == "t.parquet")  # in a CSV it is a text
        assert encoded.isna().all(axis=1).tolist() == [i == 3 for i in range(N)]
        assert encoded["when (day)"][0] == 19723  # since both are to be kept
        assert encoded.abs().max().max() < 1e7


def test_postal_codes_are_no_numbers():
    rng = np.random.default_rng(0)
    towns = np.char.zfill(rng.integers(500, 99_999, 150).astype(str), 5)
    frame = pd.DataFrame({"zip": rng.choice(towns, 600), "y": np.arange(600) % 2})
    [column] = Schema.infer(frame, "y").columns
    assert column.kind in ("category", "levels")
    # Amounts that were filled up to one width are numbers.
    padded = np.char.zfill(rng.integers(0, 900, 600).astype(str), 6)
    [column] = Schema.infer(pd.DataFrame({"v": padded, "y": frame["y"]}), "y").columns
    assert column.kind == "number"


def test_notes_on_how_values_are_written():
    def note(texts):
        frame = pd.DataFrame({"v": texts * 10, "y": [0, 1] * (5 * len(texts))})
        return Schema.infer(frame, "y").columns[0].reason

    amounts = [f"{k}.234,5{k % 10} €" for k in range(1, 30)]
    assert note(amounts) == "decimal comma; points separate thousands; in €"
    assert "in kWh" in note([f"{k}.5 KWH" for k in range(30)])
    assert "in CHF" in note([f"{k}.5 CHF" for k in range(30)])
    accounts = [f"({k},234)" if k % 3 else f"{k},500" for k in range(1, 30)]
    assert "numbers in parentheses are negative" in note(accounts)
    assert in_words("%d/%m/%Y %Hh%M") == "day/month/year hour h minute"
