"""Two models on the same rows."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import damvi

from ..cli import conftest


def run(*words, code=0):
    result = conftest.run(words, {"COLUMNS": "200"})
    assert result.exit_code == code, result.output
    return result.output


def table(n=300, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    made = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    made.insert(0, "nr", np.arange(n) + 1000)
    cuts = [1.0] if classes == 2 else [-0.5, 1.0]
    place = np.digitize(made["a"] + 0.7 * rng.normal(size=n), cuts)
    made["y"] = np.array(["no", "yes"] if classes == 2 else ["m", "l", "t"])[place]
    return made


def fitted(**options):
    options = {"target": "y", "pool": "trees"} | options
    return damvi.fit(options.pop("table", table()), **options)


@pytest.fixture(scope="module")
def old():
    return fitted(threshold={"cost": (1, 5)})


@pytest.fixture(scope="module")
def new():
    return fitted(table=table(seed=1), threshold={"cost": (1, 5)})


def test_a_model_and_itself_differ_by_nothing_at_all(old):
    for rows in (table(), table(seed=2)):  # training rows, and new ones
        found = old.compare(old, rows)
        assert list(found.table.index) == ["AP", "F1", "cost per row", "flags"]
        assert (found.table[["difference", "low", "high"]] == 0).all(axis=None)
        assert (found.agreement, len(found.rows)) == (1.0, 0)


def test_budgets_are_compared_by_hits_in_as_many_rows(old, new):
    rows = table(seed=2)
    there, back = (a.compare(b, rows, top=30) for a, b in ((old, new), (new, old)))
    name = "hits in the top 30"
    hits = there.table.loc[name]
    for which, model in (("old", old), ("new", new)):
        first = model.predict(rows, columns=["y"], top=30)
        assert hits[which] == pytest.approx((first["y"] == "yes").sum(), abs=1)
    assert hits["low"] <= hits["difference"] <= hits["high"]
    assert hits["difference"] == pytest.approx(hits["new"] - hits["old"])
    assert back.table.loc[name, "low"] == pytest.approx(-hits["high"])
    assert any(name in said for said in there.words)
    few = old.compare(new, rows, top=4).words[0]
    assert few.startswith("Too few hits in the top 4")
    one, two = (fitted(table=table(seed=k), threshold={"flags": (10, 100)}) for k in (0, 1))
    assert one.compare(two, rows).table.index[0] == name
    assert name not in one.compare(old, rows).table.index
    untold = old.compare(new, rows.drop(columns="y"), top=30).words
    assert "Hits in the top 30 are not counted, for the same reason." in untold


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_either_order_gives_the_same_differences(old, new, classes):
    one, two = old, new
    if classes == 3:
        one, two = (fitted(table=table(200, seed, classes)) for seed in (0, 1))
    rows = table(seed=2, classes=classes)
    there, back = one.compare(two, rows), two.compare(one, rows)
    np.testing.assert_array_equal(there.table["difference"], -back.table["difference"])
    np.testing.assert_allclose(there.table["low"], -back.table["high"], atol=1e-12)
    assert there.rows["row"].tolist() == back.rows["row"].tolist()
    assert (there.rows["old decision"] == back.rows["new decision"]).all()
    names = ["AP", "F1", "cost per row", "flags"]
    if classes == 3:
        names = ["macro AP", "macro F1", *(f"decided {label!r}" for label in "lmt")]
    assert list(there.table.index) == names
    assert (there.table["low"] <= there.table["difference"]).all()


def test_figures_are_those_of_evaluate(old, new):
    rows = table(seed=2)
    found = old.compare(new, rows).table
    for which, model in (("old", old), ("new", new)):
        told = model.evaluate(rows).table["value"]
        for name in ("AP", "F1", "cost per row"):
            assert found.loc[name, which] == pytest.approx(told[name])
        flagged = (model.predict(rows)["decision"] == "yes").sum()
        assert found.loc["flags", which] == flagged


def test_rows_that_differ_are_named(old, new):
    rows = table(seed=2)
    found = old.compare(new, rows, id="nr").rows
    ours, theirs = (model.predict(rows)["decision"] for model in (old, new))
    assert set(found["nr"]) == set(rows["nr"][ours != theirs])
    columns = ["row", "nr", "label", "old score", "new score"]
    assert list(found) == [*columns, "old decision", "new decision"]
    assert (found["label"].to_numpy() == rows["y"][found["row"] - 1].to_numpy()).all()


def test_training_rows_of_either_are_judged_out_of_sample(old, new):
    found = old.compare(new, table())
    words = "\n".join(found.words)
    assert "Old model: All 300 rows are training rows, scored by voters" in words
    assert "New model: All 300 rows are new to the model." in words
    assert found.table.loc["AP", "old"] == pytest.approx(
        old.evaluate(table()).table["value"]["AP"]
    )


def test_without_labels_decisions_alone_are_compared(old, new):
    rows = table(seed=2)
    found = old.compare(new, rows.drop(columns="y"))
    assert list(found.table.index) == ["flags"]
    assert found.words[0] == "No column 'y', so only decisions are compared."
    assert "label" not in found.rows
    partly = rows.assign(y=rows["y"].where(rows.index < 150))
    some = old.compare(new, partly)
    assert some.judged == 300
    assert some.rows["row"].tolist() == found.rows["row"].tolist()
    half = old.compare(new, rows[:150])
    assert some.table.loc["AP", "new"] == half.table.loc["AP", "new"]
    alone = old.compare(new, rows[rows["y"] == "no"])
    assert "the same class, so only decisions are compared" in alone.words[0]


def test_few_positives_name_no_winner(old, new):
    some = table(seed=9)
    found = old.compare(new, some.drop(index=some.index[some["y"] == "yes"][2:]))
    assert "One class has only 2 rows" in str(found)
    assert "has the better" not in str(found)


def test_blocks_of_time_make_intervals_wider(old, new):
    rows = table(seed=2).assign(day=pd.date_range("2024-01-01", periods=300))
    timed = fitted(table=table(seed=1).assign(day=rows["day"]))
    words = old.compare(timed, rows).words
    assert words[-1] == "Intervals account for similar rows: those close in time ('day')."


def test_what_cannot_be_compared_is_named(old, new):
    rows = table(seed=2)
    target = new.target
    other = replace(new, target=replace(target, name="z"))
    with pytest.raises(ValueError, match="old model predicts 'y' and the new one 'z'"):
        old.compare(other, rows)
    assert "AP" in old.compare(other, rows, target="y").table.index
    other = replace(new, target=replace(target, positive="no", negative="yes"))
    with pytest.raises(ValueError, match="old model finds 'yes' and the new one 'no'"):
        old.compare(other, rows)
    more = replace(new, target=replace(new.target, positive="", classes=("l", "m", "t")))
    with pytest.raises(ValueError, match="finds 'yes' and the new one 'l', 'm' and 't'"):
        old.compare(more, rows)
    with pytest.raises(ValueError, match="the old model cannot score the table: "):
        old.compare(new, rows.drop(columns="a"))
    with pytest.raises(ValueError, match="no target column 'q'"):
        old.compare(new, rows, target="q")
    with pytest.raises(TypeError, match="other must be a model"):
        old.compare("new.damvi", rows)
    cheap = replace(new, scores=new.scores | {"cost": [1, 2]})
    found = old.compare(cheap, rows)
    assert "cost per row" not in found.table.index
    assert found.words[0].startswith("The models were fitted with different costs")
    assert "cost per row" in old.compare(cheap, rows, cost=(1, 3)).table.index


def test_command_says_the_same(old, new, tmp_path):
    rows, out = table(seed=2), tmp_path / "rows.csv"
    old.save(tmp_path / "old.damvi")
    new.save(tmp_path / "new.damvi")
    rows.to_csv(tmp_path / "rows_in.csv", index=False)
    files = [tmp_path / name for name in ("old.damvi", "new.damvi", "rows_in.csv")]
    text = run("compare", *files, "--id", "nr", "-o", out)
    found = old.compare(new, rows, id="nr")
    assert f"differ on {len(found.rows):,}." in text
    pd.testing.assert_frame_equal(pd.read_csv(out), found.rows)
    plain = json.loads(run("compare", *files, "--json"))
    assert plain["figures"]["AP"]["difference"] == found.table.loc["AP", "difference"]
    assert "-o would overwrite" in run("compare", *files, "-o", files[2], code=2)
