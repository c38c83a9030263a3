"""What a table shows beyond its columns."""

import re

import numpy as np
import pandas as pd
import pytest

from damvi.model import prepare
from damvi.tables import Schema, time_order

N = 300


def table(**columns):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"x": rng.normal(size=N), **columns, "y": rng.integers(0, 2, N)})


def order_of(frame, **options):
    return time_order(frame, Schema.infer(frame, "y", **options))


DAYS = pd.Series(pd.date_range("2024-01-01", periods=N, freq="D"))


@pytest.mark.parametrize("form", [None, "%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y %H:%M"])
def test_rows_in_time_order(form):
    days = DAYS if form is None else DAYS.dt.strftime(form)
    assert order_of(table(when=days)) == "when"
    assert order_of(table(when=days[::-1].to_numpy())) == "when"
    assert order_of(table(when=days.sample(frac=1, random_state=0).to_numpy())) is None
    assert order_of(table(when=days), drop=["when"]) == "when"


def test_nearly_in_order_and_nearly_full():
    rng = np.random.default_rng(1)
    late = DAYS + pd.to_timedelta(rng.integers(0, 40, N), unit="D")
    assert order_of(table(when=late)) == "when"
    assert order_of(table(other=late, when=DAYS)) == "when"  # the one that is closer
    assert order_of(table(when=DAYS.mask(DAYS.index < 3))) == "when"
    assert order_of(table(when=DAYS.mask(DAYS.index < 4))) is None
    assert order_of(table(when=DAYS[0])) is None
    assert order_of(table(when=DAYS).head(15)) is None
    assert order_of(table(at=[f"{i // 60:02}:{i % 60:02}" for i in range(N)])) is None


def said_of(frame, **options):
    return prepare(frame, "y", **options).notes


def test_a_repeated_id_is_no_number_and_what_it_is_worth_is_said():
    """customer_id was used as a number, and no word was said of --group."""
    rng = np.random.default_rng(2)
    ids = rng.integers(10_000, 10_150, 1200)
    is_bad = rng.random(150) < 0.2
    habits = rng.normal(size=(150, 2))
    frame = pd.DataFrame(habits[ids - 10_000], columns=["a", "b"]).assign(customer_id=ids)
    frame["y"] = (is_bad[ids - 10_000] & (rng.random(1200) < 0.8)).astype(int)
    found = prepare(frame, "y")
    assert [column.name for column in found.schema.used] == ["a", "b"]
    [note] = found.notes
    assert "'customer_id' is an id that repeats: 150 values in 1,200 rows" in note
    assert "--group customer_id" in note
    together, apart = (float(n) for n in re.findall(r"(\d\.\d+)", note))
    assert together > 0.7
    assert apart < 0.5
    assert said_of(frame, group="customer_id") == []
    kept = prepare(frame, "y", keep=["customer_id"])
    assert "customer_id" in kept.X
    texts = frame.assign(customer_id=[f"C{i}" for i in ids])
    assert "customer_id" not in prepare(texts, "y").X


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *[("customer_id", "dropped"), ("userId", "dropped"), ("Kunden-Nr", "dropped")],
        *[("顧客ID", "dropped"), ("account number", "dropped"), ("ID", "dropped")],
        *[("paid", "number"), ("price_index", "number"), ("PAID", "number")],
        *[("room_number", "number"), ("n", "number")],
    ],
)
def test_names_of_ids_that_repeat(name, kind):
    frame = table(**{name: np.arange(N) % 130})
    assert Schema.infer(frame, "y").columns[1].kind == kind


def test_few_ids_are_categories():
    frame = table(shop_id=np.arange(N) % 12, user_id=np.arange(N) % 60)
    columns = Schema.infer(frame, "y").columns
    assert [column.kind for column in columns[1:]] == ["category", "dropped"]


def test_sentinels_are_named():
    rng = np.random.default_rng(3)
    marked = rng.random(N) < 0.1
    frame = table(
        income=np.where(marked, -999, rng.lognormal(10, 1, N)),
        age=np.where(marked, 999, rng.integers(18, 90, N)),
        balance=rng.normal(0, 1000, N).round(),
        share=rng.integers(0, 100, N),
        change=rng.integers(-1, 2, N),
    )
    notes = said_of(frame)
    assert len(notes) == 2
    assert "'income' is -999 in" in notes[0]
    assert "'age' is 999 in" in notes[1]


def test_columns_that_are_nearly_the_same_are_named():
    rng = np.random.default_rng(4)
    metres = rng.normal(size=N)
    frame = table(metres=metres, feet=metres * 3.281 + 1e-4 * rng.normal(size=N))
    [note] = said_of(frame)
    assert note.startswith("Nearly identical columns: 'metres' and 'feet'. One of each")
    rare = np.zeros((N, 2))
    rare[[150], :] = 1  # alike in the rows that are looked at first, or by a single row
    rare[[3, 7, 11], [0, 1, 1]] = 1
    assert said_of(table(a=rare[:, 0], b=rare[:, 1])) == []


def campaigns(seed=0):
    """Forty rows each of thirty campaigns, told by 'level', some of them bad."""
    rng = np.random.default_rng(seed)
    which = np.repeat(np.arange(30), 40)
    level, rate = rng.normal(size=30)[which], np.repeat([0.6, 0.02, 0.02], 10)
    rng.shuffle(rate)
    return pd.DataFrame(
        {
            "level": level + 0.01 * rng.normal(size=1200),
            "other": rng.normal(size=1200),
            "y": np.where(rng.random(1200) < rate[which], "bad", "ok"),
        }
    )


def on_neighbours(frame, **options):
    found = [note for note in prepare(frame, "y", **options).notes if "neighbours" in note]
    return found[0] if found else ""


def test_rows_that_are_like_their_neighbours_are_told_of_where_that_flatters():
    frame = campaigns()
    told = on_neighbours(frame)
    assert told.startswith(
        "Rows resemble their neighbours in the file (most of all in 'level')"
    )
    assert told.endswith("add a column with the row number and pass it as --time.")
    together, apart = map(float, re.findall(r"0\.\d{3}", told))
    assert together > apart + 0.1
    numbered = frame.assign(tick=np.arange(1200) * 1.5)
    cure = "the file is sorted by 'tick'; if that is a time, pass it as --time."
    assert on_neighbours(numbered).endswith(cure)
    assert on_neighbours(numbered, time="tick") == ""
    assert on_neighbours(frame, shuffle=True) == ""


def test_files_whose_order_says_nothing_are_passed_over():
    frame = campaigns()
    shuffled = frame.sample(frac=1, random_state=0, ignore_index=True)
    rng = np.random.default_rng(1)
    smooth = rng.normal(size=1202)
    smooth = smooth[2:] + smooth[1:-1] + smooth[:-2]
    for quiet in (
        shuffled,
        shuffled.sort_values("y", kind="stable", ignore_index=True),
        shuffled.sort_values("level", ignore_index=True),
        shuffled.assign(like=shuffled["level"] + 0.1 * rng.normal(size=1200))
        .sort_values("level", ignore_index=True)
        .iloc[::-1],
        frame.assign(shop=np.repeat(list("dbca"), 300)),
        shuffled.assign(smooth=smooth),  # in an order that is worth nothing
        frame[::20],  # too few to tell
    ):
        assert on_neighbours(quiet) == ""
