"""Drift is what chance does not explain, for few rows and for many."""

import numpy as np
import pandas as pd
import pytest
from damvi.streaming.drift import LEVEL, TESTED, Drift, Margins
from hypothesis import given
from hypothesis import strategies as st


def rows(rng, n, rate=0.05, skill=0.6):
    """Margins of a vote that is right more often than not, and the classes."""
    positive = rng.random(n) < rate
    margin = np.clip(rng.normal(np.where(positive, skill - 0.4, skill), 0.5), -1, 1)
    return margin, positive


def drift_of(before, now):
    return Drift(1, **before.compared(now), learned=True, vote=np.empty(0))


@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 50),
    factor=st.floats(0.01, 1),
    weighted=st.booleans(),
)
def test_the_sums_hold_means_and_variances(seed, n, factor, weighted):
    rng = np.random.default_rng(seed)
    margin, positive = rows(rng, n, rate=0.5)
    weights = rng.uniform(0.1, 5, n) if weighted else np.ones(n)
    cut = n // 2
    parts = [
        Margins.of(margin[some], positive[some], weights[some])
        for some in (slice(cut), slice(cut, None))
    ]
    found = (parts[0].faded(factor) + parts[1])._samples()
    D = weights * np.where(np.arange(n) < cut, factor, 1)
    figures = {
        "positive_rate": (positive.astype(float), positive >= 0),
        "gibbs_risk": ((1 - margin) / 2, positive >= 0),
        "disagreement": ((1 - margin**2) / 2, positive >= 0),
        "gibbs_risk_positives": ((1 - margin) / 2, positive),
    }
    for name, (values, counted) in figures.items():
        if not counted.any():
            assert np.isnan(found[name].mean)
            continue
        d, x = D[counted], values[counted]
        mean = np.average(x, weights=d)
        assert found[name].mean == pytest.approx(mean, abs=1e-12)
        variance = np.average((x - mean) ** 2, weights=d)
        assert found[name].variance == pytest.approx(variance, abs=1e-10)
        assert found[name].rows == pytest.approx(d.sum() ** 2 / (d**2).sum())


@pytest.mark.parametrize("n", [1, 2, 20, 500])
@pytest.mark.parametrize("remembered", [5, 50, 5000])
def test_chance_is_rarely_called_drift(n, remembered):
    rng = np.random.default_rng(n)
    alarms = [
        drift_of(
            Margins.of(*rows(rng, remembered)), Margins.of(*rows(rng, n))
        ).beyond_chance
        for _ in range(1000)
    ]
    assert np.mean(alarms) <= LEVEL


def test_what_is_no_chance_is_seen():
    rng = np.random.default_rng(0)
    before = Margins.of(*rows(rng, 20_000))
    seen = {
        "gibbs_risk": rows(rng, 1000, skill=0.4),
        "positive_rate": rows(rng, 1000, rate=0.12),
        "disagreement": (np.sign(rows(rng, 1000)[0]), rng.random(1000) < 0.05),
    }
    for name, changed in seen.items():
        drift = drift_of(before, Margins.of(*changed))
        assert getattr(drift, name).p_value < LEVEL / len(TESTED)
        assert drift.beyond_chance
    # Positives that are found no more hardly show in the risk of all rows.
    margin, positive = rows(rng, 1000)
    margin[positive] -= 0.7
    drift = drift_of(before, Margins.of(np.maximum(margin, -1), positive))
    assert drift.gibbs_risk_positives.p_value < 1e-4
    assert drift.gibbs_risk.p_value > 1e-3


def test_no_rows_no_verdict():
    some = Margins.of(*rows(np.random.default_rng(0), 50))
    for before, now in ((Margins.none(), some), (some, Margins.none())):
        drift = drift_of(before, now)
        assert all(np.isnan(getattr(drift, name).p_value) for name in TESTED)
        assert not drift.beyond_chance
    same = drift_of(some, some)
    assert all(getattr(same, name).p_value == 1 for name in TESTED)


def test_as_a_row_of_a_table_and_as_text():
    rng = np.random.default_rng(1)
    drift = drift_of(Margins.of(*rows(rng, 500)), Margins.of(*rows(rng, 500, skill=0)))
    table = pd.DataFrame([drift.as_dict(), drift.as_dict()])
    assert len(table.columns) == 3 + 3 * len(TESTED)
    assert table["gibbs_risk_now"][0] == drift.gibbs_risk.now
    assert table["beyond_chance"].all()
    text = str(drift)
    assert "gibbs risk positives" in text
    assert text.endswith("more than chance explains; weights solved again")
