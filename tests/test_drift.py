"""What changed since training: told with numbers, and not where nothing has changed."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import betabinom

import damvi
from damvi.drift import ALPHA, DriftError, DriftWarning, chance_of, compare
from damvi.model import fit_table, parse_metric, prepare
from damvi.model.model import Model
from damvi.tables import Column, Schema, TargetOfMany
from damvi.tables.profile import LEVELS, Profile, check_profile, empty_counts, unread_cells


def table(n, seed=0, labels=True):
    """Skewed, tied, discrete and heavy-tailed columns, gaps and categories."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "amount": rng.lognormal(3, 1, n),
            "visits": rng.poisson(0.7, n),
            "balance": rng.standard_t(2, n).round(1),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 80, n)),
            "shop": rng.choice(["north", "south", "NA"], n, p=[0.6, 0.3, 0.1]),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n), unit="h"),
        }
    )
    if labels:
        risk = np.log(frame["amount"]) + frame["visits"] + rng.normal(size=n)
        frame["bad"] = risk > np.quantile(risk, 0.9)
    return frame


def compared(change, n=2000, n_fit=3000):
    frame = table(n_fit, labels=False)
    schema = Schema.infer(frame, "bad")
    profile = Profile.learn(schema, schema.encode(frame), frame)
    new = change(table(n, seed=1, labels=False))
    return compare(schema, profile, profile.count(schema, schema.encode(new), new))


def fitted_model():
    made, _ = fit_table(prepare(table(1500), "bad"), parse_metric("f1"), pool="trees")
    return Model(**vars(made))


@pytest.fixture(scope="module")
def model():
    return fitted_model()


def test_the_chance_is_that_of_an_exact_test():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n, m = rng.choice([300, 2000, 20_000]), rng.choice([50, 400, 5000])
        a = rng.integers(0, n)
        exact_at = betabinom(m, a + 1, n - a)
        j = min(m, int(exact_at.ppf(1 - 10 ** -rng.uniform(2, 7))) + 1)
        exact, ours = exact_at.sf(j - 1), chance_of(j, m, a, n)
        if exact > 1e-12:
            assert 0.35 < ours / exact < 40, (n, m, a, j)
    assert chance_of(0, 200, 0, 500) == chance_of(5, 0, 0, 500) == 1


@pytest.mark.parametrize("n", [200, 3000])
def test_unchanged_rows_raise_no_warning(n):
    found = compared(lambda frame: frame, n)
    assert found.warnings == []
    assert found.summary == ""
    assert "any of the 6 columns" in found.lead
    other = replace(found.columns[0], name="who", kind="levels")
    lead = replace(found, columns=[other, *found.columns]).lead
    assert "any of the 6 columns" in lead
    assert "'who' has too many values, so only missing cells were checked" in lead
    assert all(column.p > ALPHA and not column.words for column in found.columns)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda f: f.assign(amount=f["amount"] * 100),
            r"'amount': \d\d.*% above .*the maximum",
        ),
        (lambda f: f.assign(amount=-f["amount"]), "'amount': 100% below .*the minimum"),
        (
            lambda f: f.assign(amount=f["amount"] * 5),
            r"'amount': .*% above .* in training",
        ),
        (lambda f: f.assign(age=f["age"].where(f["age"] > 50)), "'age': .* missing .10"),
        (lambda f: f.assign(shop="NA"), "'shop': 100% are 'NA' .9"),
        (
            lambda f: f.assign(visits=f["visits"] + 1),
            r"'visits': .* above 0 .5\d.* in train",
        ),
        (
            lambda f: f.assign(amount=["much"] * (len(f) - 1) + ["3"]),
            re.escape("'amount': 1,999 of 2,000 values are unreadable (0% in training)"),
        ),
        (lambda f: f.assign(shop="west"), "'shop': 2,000 of 2,000 values are new categ"),
        (lambda f: f.assign(when="soon"), "'when': 2,000 of 2,000 values are unreadable"),
        (lambda f: f.assign(when=None), "'when': 100% missing .0% in training"),
    ],
)
def test_what_changed_is_told_with_numbers(change, said):
    [warning] = compared(change).warnings
    assert re.search(said, warning)


def test_what_is_certain_and_small_is_shown_and_not_warned_of():
    found = compared(lambda f: f.assign(amount=f["amount"] * 1.3), 20_000)
    assert not found.warnings
    assert found.columns[0].name == "amount"
    assert found.columns[0].changed
    assert 0.05 < found.columns[0].distance < 0.2
    assert "too little to matter" in found.lead


def test_counts_of_blocks_add_up():
    frame = table(1000, labels=False)
    schema = Schema.infer(frame, "bad")
    profile = Profile.learn(schema, schema.encode(frame), frame)
    new = table(777, seed=1, labels=False)
    X = schema.encode(new)
    whole = profile.count(schema, X, new)
    parts = [slice(0, 100), slice(100, 101), slice(101, None)]
    total = empty_counts(schema, 2)
    for part in parts:
        total = total.plus(profile.count(schema, X.iloc[part], new.iloc[part]))
    for name, counts in vars(whole).items():
        np.testing.assert_array_equal(getattr(total, name), counts)
    some = profile.count(schema, X, new, most=300)
    assert some.rows == 300
    assert abs(some.above / 300 - whole.above / 777).max() < 0.1


def test_rows_that_stand_for_many():
    """A sample with more of a rare class than its share, as that of a dataset on disk."""
    frame = table(20_000)
    schema = Schema.infer(frame.drop(columns="bad"), "bad")
    whole = Profile.learn(schema, schema.encode(frame), frame)
    bad = frame["bad"].to_numpy()
    rows = np.r_[np.flatnonzero(bad)[:1500], np.flatnonzero(~bad)[:1500]]
    some = frame.iloc[rows].reset_index(drop=True)
    weights = np.where(bad[rows], 2000 / 1500, 18_000 / 1500)
    found = Profile.learn(schema, schema.encode(some), some, weights)
    assert 1500 < found.counts.rows < 3000
    np.testing.assert_allclose(found.cuts[0, 3:-3], whole.cuts[0, 3:-3], rtol=0.15)
    new = table(1000, seed=3)
    now = found.count(schema, schema.encode(new), new)
    assert not compare(schema, found, now).warnings


def test_cells_that_are_empty_or_say_so_are_missing_and_others_unread():
    column = Schema.infer(pd.DataFrame({"x": ["1", "2", "?"] * 5}), "y").used[0]
    cells = pd.Series(["?", None, " n/a ", "much", "5"])
    gone = np.array([True, True, True, True, False])
    assert unread_cells(column, lambda: cells, gone).tolist() == [False] * 3 + [True, False]
    schema = Schema((column,))
    frame = cells.to_frame("x")
    profile = Profile.learn(schema, schema.encode(frame), frame)
    assert profile.counts.missing.tolist() == [3]
    assert profile.counts.unread.tolist() == [1]
    arrow = pa.table({"x": pa.chunked_array([["?", None, " n/a "], ["much", "5"]])})
    found = profile.count(schema, schema.encode(frame), arrow)
    assert (found.missing[0], found.unread[0]) == (3, 1)


def test_dates_that_are_only_counted_from():
    days = pd.date_range("2024-01-01", periods=60).astype(str).to_series(index=range(60))
    frame = pd.DataFrame({"start": days, "end": days, "x": np.arange(60.0) % 7})
    columns = (
        Column("start", "date", form="ISO8601"),
        Column("end", "date", form="ISO8601", parts=("days since start",)),
        Column("x", "number"),
    )
    schema = Schema(columns)
    profile = Profile.learn(schema, schema.encode(frame), frame)
    frame.loc[:40, "start"] = None
    now = profile.count(schema, schema.encode(frame), frame)
    assert now.missing.tolist() == [41, 0, 0]


def test_categories_that_were_alone_announce_others():
    """Rare categories go on to come: as many as were met once."""
    rng = np.random.default_rng(0)

    def draw(n):
        return pd.DataFrame({"code": [f"c{k}" for k in np.minimum(rng.zipf(1.5, n), 300)]})

    frame = draw(500)
    schema = Schema.infer(frame, "y")
    profile = Profile.learn(schema, schema.encode(frame), frame)
    for _ in range(5):
        new = draw(1000)
        found = compare(schema, profile, profile.count(schema, schema.encode(new), new))
        assert found.columns[0].unread[1] >= 0
        assert not found.warnings


@pytest.mark.slow
def test_a_model_warns_and_is_strict_on_request(model):
    new = table(2000, seed=1, labels=False)
    assert len(model.predict(new)) == 2000  # warnings are errors here
    odd = new.assign(amount=new["amount"] * 100)
    with pytest.warns(DriftWarning, match=r"'amount': .* above .*the maximum in training"):
        found = model.predict(odd)
    assert found["decision"].mean() > 0.2
    with pytest.warns(DriftWarning, match=r"of rows are flagged .expected [\d.]+%"):
        model.predict(odd)
    with pytest.raises(DriftError, match="drifted from the training rows"):
        model.predict(odd, strict=True)


@pytest.mark.slow
def test_a_page_that_opens_offline(model, tmp_path):
    new = table(800, seed=1, labels=False)
    new["shop"] = "<b>south</b>"
    new.loc[:700, "shop"] = "south"
    new["amount"] *= 20
    found = model.drift(new)
    assert found.as_frame()["column"].iloc[0] in ("amount", "shop")
    assert json.loads(json.dumps(found.as_dict()))["rows"] == 800
    shown = str(found).splitlines()
    assert shown[:2] == [
        f"800 rows, compared with {found.training_rows:,.0f} training rows.",
        found.lead,
    ]
    assert any(line.startswith("amount: ") for line in shown)
    assert re.match(r" *expected +90% interval", shown[-5])
    found.save(tmp_path / "drift.html", name="<i>new.csv</i>")
    page = (tmp_path / "drift.html").read_text()
    assert "&lt;i&gt;new.csv" in page
    assert "<i>" not in page
    assert "<b>south" not in page
    assert "http" not in page.replace('http-equiv="Content', "")
    assert "<script" not in page
    assert page.count("<svg") == 2
    assert "2024-01-01 to 2024-02-03" in page
    unchanged = model.drift(table(400, seed=9, labels=False)).page()
    assert "None: no change is both significant and large" in unchanged
    assert "<svg" not in unchanged


@pytest.mark.slow
def test_what_the_model_is_worth_there(model):
    new = table(1500, seed=4)
    found = model.drift(new)
    [sentence] = found.worth
    assert re.match(
        r"Assuming that rows with .*: about \d+ of the \d+ flagged rows .*", sentence
    )
    for name, figure in found.expected.overall.items():
        assert figure.low - 0.05 <= found.achieved[name] <= figure.high + 0.05, name
    page = found.page()
    assert "Expected scores" in page
    assert "Achieved scores are on the 1,500 labelled rows" in page
    rates, cut, doubt = model.drift(
        new.assign(amount=new["amount"] * 100), label_shift=True
    ).worth[1:]
    assert re.match(r"The votes .* of the rows are 'True' \(.*\); in training .*10", rates)
    assert re.match(
        r"The best choice at these rates is a threshold of \S+ on the score: precision", cut
    )
    assert "Treat this with caution: 'amount' has values" in doubt


def test_factors_that_would_be_best_are_told_class_by_class():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 2)), columns=["a", "b"])
    place = np.digitize(frame["a"] + 0.5 * rng.normal(size=400), [-0.5, 1.0])
    frame["kind"] = np.array(["low", "mid", "top"])[place]
    found = damvi.fit(frame, "kind", pool="trees").drift(
        frame[frame["a"] > 0], label_shift=True
    )
    told = r"The best choice at these rates is factors of \S+ for 'low', .* for 'top': "
    assert any(re.match(told, sentence) for sentence in found.worth)


def test_training_rows_do_not_flatter(model):
    """They are judged by votes of voters that had not seen them."""
    found = model.drift(table(1500))
    real = model.evaluate(table(1500)).figures.overall
    assert found.achieved["f1"] == pytest.approx(real["f1"].value)
    assert found.expected.overall["ap"].value < 0.97


def test_flags_of_training_rows_are_counted_once(model):
    """The share of flagged rows is of the same decisions as their expected scores."""
    found = model.drift(table(1500))
    (flags,), n = found.decisions, found.expected.by_class[0]["named"]
    assert flags.now == n / found.expected.rows
    assert n == model.evaluate(table(1500)).figures.confusion[:, 1].sum()
    assert found.warnings == []
    assert found.origin.startswith("All 1,500 rows are training rows")
    assert found.origin in found.page()
    assert model.drift(table(300, seed=9)).origin == ""


def test_decisions_of_several_classes():
    frame = table(1000, labels=False)
    schema = Schema.infer(frame, "y")
    profile = Profile.learn(schema, schema.encode(frame), frame)
    profile = profile.with_decisions(np.repeat([0, 1, 2], [700, 200, 100]), 3)
    now = profile.count(
        schema, schema.encode(frame), frame, decided=np.repeat([0, 1, 2], [150, 350, 500])
    )
    target = TargetOfMany("kind", classes=("a", "b", "c"))
    words = compare(schema, profile, now, target).warnings
    assert len(words) == 2
    assert "50% of rows are predicted as 'c' (expected 10%)" in words
    as_before = profile.count(
        schema, schema.encode(frame), frame, decided=np.repeat([0, 1, 2], [695, 200, 105])
    )
    remarks = [one.remark for one in compare(schema, profile, as_before, target).decisions]
    assert remarks == [", no significant change"] * 3


def test_a_profile_must_fit_the_schema(model):
    schema, profile = model.schema, model.profile
    assert check_profile(profile, schema, 2)
    assert not check_profile(profile, schema, 3)
    assert profile.cuts.shape == (4, len(LEVELS))

    def changed(**parts):
        counts = vars(profile.counts) | {k: v for k, v in parts.items() if k != "cuts"}
        return Profile(
            parts.get("cuts", profile.cuts), profile.days, type(profile.counts)(**counts)
        )

    assert not check_profile(changed(cuts=profile.cuts[:, ::-1]), schema, 2)
    assert not check_profile(changed(cuts=np.full_like(profile.cuts, np.nan)), schema, 2)
    assert not check_profile(changed(missing=-profile.counts.missing - 1), schema, 2)
    assert not check_profile(changed(above=profile.counts.above * 2), schema, 2)
    assert not check_profile(changed(rows=float("inf")), schema, 2)
    assert not check_profile(changed(rows=3), schema, 2)
    assert not check_profile(changed(levels=profile.counts.levels[:1]), schema, 2)
