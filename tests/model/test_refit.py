"""A fit like an older model: its settings, its columns, its threshold rule."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import damvi
from damvi.model.refit import promises
from damvi.tables import Schema

from ..cli import conftest


def payments(n=300, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "amount": rng.lognormal(3, 1, n).round(2),
            "shop": rng.choice(list("abcd"), n),
            "size": rng.normal(size=n),
            "junk": rng.normal(size=n),
            "customer": rng.integers(0, 40, n),
            "trust": rng.random(n) + 0.5,
        }
    )
    risk = table["amount"] * (table["shop"] == "a") + 10 * rng.normal(size=n)
    table["bad"] = np.where(risk > 35, "yes", "no")
    return table


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    model = damvi.fit(
        payments(),
        "bad",
        pool="trees",
        group="customer",
        sample_weight="trust",
        drop=["junk"],
        threshold="recall@0.8",
        random_state=7,
    )
    path = tmp_path_factory.mktemp("old") / "old.damvi"
    model.save(path)
    return path


DAYS = pd.date_range("2024", periods=40).astype(str).tolist()


def same_votes(one, other):
    return np.array_equal(one.training.vote, other.training.vote, equal_nan=True)


def test_same_rows_give_the_same_model_bit_by_bit(old):
    model = damvi.load(old)
    again = damvi.fit(payments(), like=model)
    assert np.array_equal(again.classifier.weights_, model.classifier.weights_)
    assert again.classifier.threshold_ == model.classifier.threshold_
    assert same_votes(again, model)
    assert again.schema == model.schema
    for name in ("seed", "pool", "settings"):
        assert again.made[name] == model.made[name]
    assert again.scores["metric"] == "recall@0.8"


def test_what_the_older_model_promised_stands_beside_the_new_promise(old):
    model = damvi.load(old)
    again = damvi.fit(payments(), like=model)
    f1 = model.scores["models"]["DAMVI"]["f1"]
    told = f"F1 {f1['value']:.3f} (90% CI: {f1['low']:.3f} to {f1['high']:.3f}); AP "
    before, now = again.scores["older"]
    assert before.startswith(f"Older model, out of sample: {told}")
    assert now.startswith(f"New model: {told}")
    assert before in repr(again)
    assert now in repr(again)
    assert "older" not in model.scores
    promised = {"threshold": 0.1, "words": "recall of at least 0.8 (by 40 positives)"}
    sure = replace(model, scores=model.scores | {"guarantee": promised})
    assert promises(sure, model.scores)[0].endswith(
        "; a guaranteed recall of at least 0.8."
    )
    assert promises(replace(model, scores={}), model.scores) == []
    own = model.scores["models"]["DAMVI"]
    dear = {"models": {"DAMVI": {"cost": own["f1"]}}, "cost": [1, 20]}
    assert "cost" in promises(replace(model, scores=dear), dear)[0]
    other = dear | {"cost": [1, 5]}  # at other prices it tells nothing
    assert promises(replace(model, scores=other), dear) == []


def test_what_is_given_counts(old):
    model = damvi.load(old)
    again = damvi.fit(
        payments(), like=model, threshold={"cost": (1, 20)}, random_state=3, keep="junk"
    )
    assert again.scores["cost"] == [1, 20]
    assert again.made["seed"] == 3
    assert again.made["settings"] == model.made["settings"] | {"keep": ["junk"]}
    assert {"junk", "amount"} <= {column.name for column in again.schema.used}
    assert not same_votes(again, model)


def run(*words, code=0):
    result = conftest.run(words)
    assert result.exit_code == code, result.output
    return result


@pytest.mark.slow
def test_command_repeats_the_model_too(old, tmp_path):
    data, new = tmp_path / "data.csv", tmp_path / "new.damvi"
    payments().to_csv(data, index=False)
    run("fit", data, "--like", old, "-o", new)
    assert same_votes(damvi.load(new), damvi.load(old))
    run("fit", data, "--like", old, "--seed", 3, "--metric", "f1", "-o", new)
    again = damvi.load(new)
    assert (again.made["seed"], again.scores["metric"]) == (3, "f1")
    assert again.made["pool"] == "trees"
    text = run("fit", data, "-o", new, code=2).output
    assert "give the column to predict with --target COLUMN" in text


@pytest.mark.slow
def test_own_voters_and_classes_are_those_of_the_older_model():
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(240, 3)), columns=list("abc"))
    table["kind"] = np.digitize(table["a"] + 0.3 * rng.normal(size=240), [-0.7, 0.7])
    pool = [("tree", DecisionTreeClassifier(max_depth=3)), ("line", LogisticRegression())]
    model = damvi.fit(table, "kind", pool=pool)
    again = damvi.fit(table, like=model)
    assert same_votes(again, model)
    table["kind"] = table["kind"].replace({0: 5})
    with pytest.warns(UserWarning, match=r"have changed \(new: '5'; gone: '0'"):
        damvi.fit(table, like=model)


def test_changes_of_the_table_are_said(old):
    table = payments(seed=1).drop(columns="junk")
    table["shop"] = table["shop"].map({"a": 1, "b": 2, "c": 3, "d": 4})
    table["size"] = 1.0
    table["note"] = "x"
    table["bad"] = table["bad"].mask(table.index == 0, "perhaps")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = damvi.fit(table, like=damvi.load(old))
    said = "\n".join(str(one.message) for one in caught)
    assert "'shop' is a category as before, but looks like a number here" in said
    assert "'size' was a number and is now dropped: constant" in said
    assert "new column is not used: 'note'. Use keep= to add them" in said
    assert "the negative class of 'bad' was 'no' and is now several other labels" in said
    kinds = {column.name: column.kind for column in model.schema.columns}
    assert (kinds["shop"], kinds["size"], kinds["note"]) == ("category", *["dropped"] * 2)


def test_a_missing_column_is_named_with_the_cure(old):
    model, table = damvi.load(old), payments().drop(columns="amount")
    with pytest.raises(
        ValueError, match=r"missing column used by the older model: 'amount'.* drop="
    ):
        damvi.fit(table, like=model)
    again = damvi.fit(table, like=model, drop=["amount"])
    assert [column.name for column in again.schema.used] == ["shop", "size"]


@pytest.mark.slow
def test_the_order_of_time_is_compared():
    table = payments()
    table["day"] = pd.date_range("2024-01-01", periods=len(table), freq="D")
    model = damvi.fit(table, "bad", pool="trees", drop=["junk", "customer", "trust"])
    assert model.scores["alike"] == {"time": "day"}
    shuffled = table.sample(frac=1, random_state=0)
    with pytest.warns(
        UserWarning, match="validated forward in time by 'day', but this one uses"
    ):
        damvi.fit(shuffled, like=model)
    again = damvi.fit(shuffled, like=model, time="day")
    assert again.scores["alike"] == {"time": "day"}


def test_models_that_do_not_say_how_they_were_made_are_refused(old):
    model = damvi.load(old)
    with pytest.raises(ValueError, match="has no record of its options"):
        damvi.fit(payments(), like=replace(model, made={}))
    with pytest.raises(TypeError, match=r"as from damvi\.load"):
        damvi.fit(payments(), like="old.damvi")
    with pytest.raises(ValueError, match="give the column to predict"):
        damvi.fit(payments())


def test_settings_of_a_file_are_plain_values(old, tmp_path):
    model, path = damvi.load(old), tmp_path / "odd.damvi"
    replace(model, made=model.made | {"settings": {"time": np.zeros(2)}}).save(path)
    with pytest.raises(damvi.io.ModelFileError, match="fit settings"):
        damvi.load(path)


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        (["a", "b"] * 20, np.arange(40) % 7, "category"),
        (np.arange(40.0) / 7, ["x"] * 30 + ["1.5", "2"] * 5, "number"),
        (np.arange(40.0) / 7, pd.date_range("2024", periods=40), "date"),
        (
            DAYS,
            [*DAYS[:20], *["a day"] * 20],
            "date",
        ),
        (pd.date_range("2024", periods=40), np.arange(40.0) / 7, "number"),
        (["a", "b"] * 20, [[1], [2]] * 20, "dropped"),
        (["a", "b"] * 20, ["a"] * 40, "dropped"),
    ],
)
def test_columns_stay_what_they_were_as_far_as_they_can(before, now, kind):
    y = np.arange(40) % 3 == 0
    schema = Schema.infer(pd.DataFrame({"x": before, "y": y}), "y")
    table = pd.DataFrame({"x": now, "y": y})
    again = Schema.infer(table, "y", like=schema)
    assert again.columns[0].kind == kind
    if kind != "dropped":
        assert len(again.encode(table)) == 40


def test_costs_do_not_replace_the_metric_of_the_older_model_in_silence(tmp_path):
    data, older, out = (tmp_path / name for name in ("data.csv", "old.damvi", "new.damvi"))
    payments().to_csv(data, index=False)
    costs = ("fit", data, "--like", older, "--cost-miss", 5, "-o", out)
    damvi.fit(payments(), "bad", pool="trees", threshold={"fbeta": 2}).save(older)
    text = " ".join(run(*costs, code=2).output.split())
    assert "f2 is the metric of the older model; to minimise costs, add --metric" in text
    damvi.fit(payments(), "bad", pool="trees").save(older)
    text = " ".join(run(*costs).output.split())
    assert "The metric is F1, as in the older model; to minimise the costs" in text
    assert damvi.load(out).scores["metric"] == "f1"
    assert "as in the older model; to" not in run(*costs, "--metric", "cost").output
    assert damvi.load(out).scores["metric"] == "cost"


def test_a_date_with_gaps_is_not_suggested_as_time(tmp_path):
    data, out, table = tmp_path / "data.csv", tmp_path / "new.damvi", payments()
    days = pd.Series(pd.date_range("2024-01-01", periods=len(table)))
    table["seen"] = days.sample(frac=1, random_state=0).to_numpy()
    told = []
    for gap in (None, 3):
        table["seen"] = table["seen"].mask(table.index == gap)
        table.to_csv(data, index=False)
        told.append(
            run("fit", data, "--target", "bad", "-o", out, "--pool", "trees").output
        )
    assert ["is the time of each row" in " ".join(one.split()) for one in told] == [
        True,
        False,
    ]
