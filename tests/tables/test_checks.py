"""What a table shows beyond its columns."""

import numpy as np
import pandas as pd
import pytest

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
