"""Columns that say something of rows beside the features: groups, times and weights."""

import numpy as np
import pandas as pd
import pytest

from damvi.model import prepare


def table(n=60):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=n), "paid": np.arange(n) % 4 == 0})
    frame["day"] = pd.date_range("2024-01-01", periods=n).strftime("%d.%m.%Y")
    frame["shop"], frame["count"] = np.arange(n) // 5, rng.integers(1, 4, n)
    return frame


def test_roles_are_read_and_are_no_features():
    frame = table()
    frame["paid"] = frame["paid"].astype(object)
    frame.loc[3, "paid"] = None  # without a label
    found = prepare(frame, "paid", group="shop", time="day", sample_weight="count")
    assert found.schema.features == ["size", "day (weekday)"]  # the day itself is none
    rows = np.delete(np.arange(60), 3)
    np.testing.assert_array_equal(np.argsort(found.times, kind="stable"), np.arange(59))
    assert found.times.dtype == np.int64
    np.testing.assert_array_equal(found.groups, rows // 5)
    np.testing.assert_array_equal(found.sample_weight, frame["count"].to_numpy()[rows])
    assert found.notes == []


@pytest.mark.parametrize("as_times", [np.arange, lambda n: pd.to_datetime(np.arange(n))])
def test_times_may_be_numbers_or_timestamps(as_times):
    frame = table().assign(day=as_times(60))
    assert (np.diff(prepare(frame, "paid", time="day").times) >= 0).all()


@pytest.mark.parametrize(
    ("column", "values", "role", "match"),
    [
        ("day", None, "time", "time column 'day' is missing in 1 row; every row"),
        ("day", "99.99.2024", "time", "1 value that is not a time, for example '99"),
        ("shop", None, "group", "group column 'shop' is missing in 1 row"),
        ("count", None, "sample_weight", "1 invalid value, such as 'nan'"),
        ("count", -1, "sample_weight", "such as '-1.*numbers of at least 0"),
    ],
)
def test_what_cannot_be_a_role_is_refused(column, values, role, match):
    frame = table(200)
    frame[column] = frame[column].astype(object if column == "day" else float)
    frame.loc[7, column] = values
    with pytest.raises(ValueError, match=match):
        prepare(frame, "paid", **{role: column})


def test_a_role_that_is_not_there_or_a_feature_too_is_refused():
    with pytest.raises(ValueError, match=r"no time column 'dya'.*Did you mean 'day'"):
        prepare(table(), "paid", time="dya")
    with pytest.raises(ValueError, match="'day' is the time column"):
        prepare(table(), "paid", time="day", keep=["day"])
    with pytest.raises(ValueError, match="neither dates nor numbers"):
        prepare(table().assign(day="today"), "paid", time="day")
