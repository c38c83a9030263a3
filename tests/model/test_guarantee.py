"""Budgets and guarantees from a table to a file and back."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import damvi
from damvi.certificate import certify
from damvi.evaluation import Figure
from damvi.model import prediction
from damvi.model.guarantee import set_aside
from damvi.model.table import prepare


def table_of(n, seed=0):
    rng = np.random.default_rng(seed)
    bad = rng.random(n) < 0.1
    return pd.DataFrame(
        {
            "size": rng.normal(size=n) + 2 * bad,
            "shape": rng.normal(size=n),
            "shop": rng.choice(list("abc"), n),
            "owner": rng.integers(0, n // 4, n),
            "bad": np.where(bad, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def table():
    return table_of(1500)


@pytest.fixture(scope="module")
def plain(table):
    return damvi.fit(table, "bad", drop=["owner"], pool="trees")


@pytest.fixture(scope="module")
def promised(table):
    return damvi.fit(table, "bad", drop=["owner"], pool="trees", guarantee={"recall": 0.7})


def test_a_promise_is_kept_in_the_model_file(promised, tmp_path):
    told = promised.scores["guarantee"]
    assert told["rate"] == "recall"
    assert told["positives"] == told["counted"] > 30
    assert told["threshold"] == promised.classifier.threshold_
    assert told["basis"].startswith("It holds for rows drawn like the 4")
    cut = f"{told['words']}, by flagging votes above {told['threshold']:.4g}"
    assert all(words in repr(promised) for words in (cut, told["price"], told["basis"]))
    promised.save(tmp_path / "model.damvi")
    loaded = damvi.load(tmp_path / "model.damvi")
    assert loaded.scores["guarantee"] == told
    new = table_of(3000, seed=1)
    found, again = promised.predict(new), loaded.predict(new)
    pd.testing.assert_frame_equal(found, again)
    flagged = (found["score"] > told["threshold"]).to_numpy()
    assert ((found["decision"] == "yes").to_numpy() == flagged).all()
    assert flagged[new["bad"] == "yes"].mean() > 0.7


def test_a_promise_that_cannot_be_right_is_refused(promised, tmp_path):
    path, scores = tmp_path / "model.damvi", promised.scores
    own, wrong = scores["guarantee"], "invalid"
    figures = own["figures"]
    for changes, why in (
        ({"threshold": -0.5}, "another threshold"),
        ({"evil": 1}, "has no text"),
        ({"rate": "evil"}, wrong),
        ({"rate": []}, wrong),
        ({"level": "0.9"}, wrong),
        ({"level": float("nan")}, wrong),
        ({"confidence": 1.5}, wrong),
        ({"positives": -1}, wrong),
        ({"positives": 10**40}, wrong),
        ({"found": own["positives"] + 1}, wrong),
        ({"counted": 2.5}, wrong),
        ({"by_group": 1}, wrong),
        ({"basis": None}, wrong),
        ({"figures": [1]}, wrong),
        ({"figures": figures | {"recall": {"value": 0.5}}}, wrong),
        ({"figures": figures | {"recall": {**figures["recall"], "low": "0"}}}, wrong),
    ):
        told = scores | {"guarantee": own | changes}
        replace(promised, scores=told).save(path)
        with pytest.raises(damvi.io.ModelFileError, match=why):
            damvi.load(path)
    for lacking in own.keys() - {"figures"}:
        left = {name: value for name, value in own.items() if name != lacking}
        replace(promised, scores=scores | {"guarantee": left}).save(path)
        with pytest.raises(damvi.io.ModelFileError, match="has no text"):
            damvi.load(path)


def test_a_loaded_promise_is_worded_by_its_numbers(promised, tmp_path):
    """So no file can word it otherwise, and a later version may reword it."""
    path, scores = tmp_path / "model.damvi", promised.scores
    own = scores["guarantee"]
    texts = {"words": own["words"].replace("0.7", "0.99"), "price": 1}
    replace(promised, scores=scores | {"guarantee": own | texts}).save(path)
    assert damvi.load(path).scores["guarantee"] == own


@pytest.mark.slow
def test_the_rows_of_a_promise_train_nothing(table, promised):
    """The rest alone gives the same model, and these rows then the same promise."""
    whole = prepare(table, "bad", drop=["owner"])
    aside = set_aside(table, whole, "recall", 0.3, 0)
    assert aside.sum() == len(table) - promised.scores["rows"]
    rest = damvi.fit(table[~aside], "bad", drop=["owner"], pool="trees")
    np.testing.assert_array_equal(rest.training.vote, promised.training.vote)
    promise = rest.guarantee(table[aside], recall=0.7)
    assert promise.threshold == promised.scores["guarantee"]["threshold"]
    again = rest.with_guarantee(promise)
    assert again.classifier.threshold_ == promised.classifier.threshold_
    assert rest.classifier.threshold_ != again.classifier.threshold_
    # Training rows have no part in the threshold, and are all cut at it.
    found = again.evaluate(table[~aside]).figures.overall["recall"]
    assert found.value == pytest.approx(
        again.scores["guarantee"]["figures"]["recall"]["value"]
    )


@pytest.mark.slow
def test_rows_of_a_promise_certify_nothing_more(plain):
    new = table_of(1500, seed=3)
    kept = plain.with_guarantee(plain.guarantee(new, false_alarm_rate=0.1))
    X, y = kept.schema.encode(new), (new["bad"] == "yes").to_numpy()
    with pytest.raises(ValueError, match="certify nothing"):
        certify(kept.classifier, X, y)
    certify(plain.classifier, X, y)
    told = "1,500 of them were used to set its guaranteed threshold"
    assert told in kept.evaluate(new).words
    assert told not in plain.evaluate(new).words


def test_training_rows_promise_nothing(plain, table):
    with pytest.raises(ValueError, match="never seen"):
        plain.guarantee(table, recall=0.7)
    both = pd.concat([table[:400], table_of(800, seed=2)])
    promise = plain.guarantee(both, recall=0.7)
    assert promise.positives + promise.negatives == 800
    assert "400 training rows" in promise.basis


@pytest.mark.parametrize("rate", ["precision", "false_alarm_rate"])
def test_other_rates(plain, rate):
    level = {"precision": 0.5, "false_alarm_rate": 0.1}[rate]
    promise = plain.guarantee(table_of(1500, seed=3), **{rate: level})
    flagged = plain.with_guarantee(promise).predict(table_of(4000, seed=4))
    truth = (table_of(4000, seed=4)["bad"] == "yes").to_numpy()
    named = (flagged["decision"] == "yes").to_numpy()
    kept = {
        "precision": truth[named].mean() >= level,
        "false_alarm_rate": named[~truth].mean() <= level,
    }
    assert kept[rate]


def test_too_few_rows_for_a_promise(plain, table):
    few = plain.guarantee(table_of(60, seed=5), recall=0.9)
    assert few.threshold is None
    assert "22 are needed" in str(few)
    with pytest.raises(ValueError, match="has no threshold"):
        plain.with_guarantee(few)
    with pytest.warns(UserWarning, match="but 22 are needed"):
        model = damvi.fit(
            table[:300], "bad", drop=["owner"], pool="trees", guarantee={"recall": 0.9}
        )
    assert model.scores["guarantee"]["threshold"] is None
    assert model.scores["tuning"] is not None


@pytest.mark.slow
def test_in_time_the_last_rows_promise(table):
    dated = table.assign(day=pd.date_range("2024-01-01", periods=1500, freq="6h"))
    whole = prepare(dated, "bad", time="day")
    shuffled = dated.sample(frac=1, random_state=0)
    taken = set_aside(shuffled, prepare(shuffled, "bad", time="day"), "recall", 0.3, 0)
    days = shuffled["day"]
    assert days[taken].min() > days[~taken].max()
    assert 440 < taken.sum() < 460
    model = damvi.fit(
        dated, "bad", time="day", pool="trees", guarantee="recall=0.7", drop=["owner"]
    )
    assert "the latest 4" in model.scores["guarantee"]["basis"]
    assert "assumes that future rows are like these" in model.scores["guarantee"]["basis"]
    assert "the confidence is lower than stated" in model.scores["guarantee"]["basis"]
    # With groups, whole ones: those that came last.
    both = replace(whole, groups=dated["owner"].to_numpy())
    taken = set_aside(dated, both, "recall", 0.3, 0)
    assert not set(dated["owner"][taken]) & set(dated["owner"][~taken])


@pytest.mark.slow
def test_groups_promise_as_groups(table):
    model = damvi.fit(table, "bad", group="owner", pool="trees", guarantee={"recall": 0.6})
    told = model.scores["guarantee"]
    assert told["by_group"]
    assert told["counted"] < told["positives"]
    assert "Each group counts once" in told["basis"]


def test_figures_at_the_threshold_of_a_promise_heed_which_rows_are_alike(tmp_path):
    """Each row ten times over, and the ten in one group: they say what one row says."""
    alike = pd.concat([table_of(150)] * 10, ignore_index=True)
    alike["owner"] = np.arange(1500) % 150
    model = damvi.fit(alike, "bad", group="owner", pool="trees")
    model.save(tmp_path / "model.damvi")
    promise = damvi.load(tmp_path / "model.damvi").guarantee(
        table_of(600, seed=5).assign(owner=np.arange(600) + 1000), recall=0.6
    )
    kept = damvi.load(tmp_path / "model.damvi").with_guarantee(promise)
    recall = kept.scores["guarantee"]["figures"]["recall"]
    positives = int((alike["bad"] == "yes").sum())
    alone = Figure.counted(round(recall["value"] * positives), positives)
    assert recall["high"] - recall["low"] > 2 * (alone.high - alone.low)


def test_a_precision_takes_the_classes_as_they_come(table):
    whole = prepare(table, "bad", drop=["owner"])
    counts = {
        rate: [
            int((set_aside(table, whole, rate, 0.3, seed) & whole.y).sum())
            for seed in range(5)
        ]
        for rate in ("recall", "precision")
    }
    assert len(set(counts["recall"])) == 1 < len(set(counts["precision"]))


def test_promises_that_cannot_be_asked_for(table, plain, tmp_path):
    with pytest.raises(ValueError, match="two classes, but 'shop' has 3"):
        damvi.fit(table, "shop", pool="trees", guarantee={"recall": 0.9})
    with pytest.raises(ValueError, match="guarantee_size"):
        damvi.fit(table, "bad", pool="trees", guarantee={"recall": 0.9}, guarantee_size=1.5)
    with pytest.raises(ValueError, match="confidence"):
        damvi.fit(table, "bad", guarantee={"recall": 0.9}, confidence=90)
    with pytest.raises(ValueError, match="exactly one of"):
        plain.guarantee(table, recall=0.9, precision=0.5)
    table.to_parquet(tmp_path / "part.parquet")
    with pytest.raises(ValueError, match="guarantee needs all rows in memory"):
        damvi.fit(tmp_path, "bad", guarantee={"recall": 0.9})


@pytest.mark.slow
def test_a_budget(table):
    model = damvi.fit(table, "bad", drop=["owner"], pool="trees", threshold={"flags": 90})
    top = model.scores["top"]
    assert (top["rows"], top["of"]) == (90, 1500)
    assert top["words"] in repr(model)
    assert top["hits"]["low"] < top["hits"]["value"] < top["hits"]["high"]
    new = table_of(6000, seed=1)
    assert 250 < (model.predict(new)["decision"] == "yes").sum() < 480
    share = damvi.fit(table, "bad", drop=["owner"], pool="trees", threshold="flags@6%")
    assert share.classifier.threshold_ == model.classifier.threshold_
    assert share.scores["top"] == top


def test_what_the_top_rows_find(plain):
    new = table_of(2000, seed=6)
    found = plain.evaluate(new, top=100)
    assert found.top.hits.value == pytest.approx(
        (plain.predict(new, columns=["bad"], top=100)["bad"] == "yes").sum(), abs=5
    )
    assert found.as_dict()["top"]["rows"] == 100
    assert "100 highest" in repr(found)
    assert plain.evaluate(new, top=5000).top.recall.value == 1
    with pytest.raises(ValueError, match="top=0"):
        plain.evaluate(new, top=0)


def test_top_rows_of_each_group(plain, tmp_path):
    new = table_of(2000, seed=7)
    new.loc[::50, "shop"] = None
    scores = plain.predict(new, columns=["shop"])
    expected = [
        label
        for shop in scores["shop"].unique()
        for label in scores[
            scores["shop"].isna() if pd.isna(shop) else scores["shop"] == shop
        ]
        .sort_values("score", ascending=False, kind="stable")
        .index[:7]
    ]
    found = plain.predict(new, top=7, by="shop")
    assert found.index.tolist() == expected
    new.to_csv(tmp_path / "new.csv", index=False)
    of_file = plain.predict(tmp_path / "new.csv", top=7, by="shop")
    np.testing.assert_array_equal(of_file["score"], found["score"])
    with pytest.raises(ValueError, match="needs top"):
        plain.predict(new, by="shop")


@pytest.mark.parametrize("by", [None, "shop"])
def test_top_rows_of_many_blocks_take_little_memory(plain, monkeypatch, by):
    """However the rows are cut, and often as they are thinned on the way."""
    monkeypatch.setattr(prediction, "MOST_NUMBERS", 1)
    rng = np.random.default_rng(0)
    rows = pa.table(
        {"shop": rng.choice(list("abcde"), 5000), "score": rng.integers(0, 900, 5000) / 900}
    )
    top = prediction.Top(plain, 4, by, numbered=True)
    held = []
    for start in range(0, 5000, 50):
        top.add(rows.slice(start, 50))
        held.append(sum(map(len, top._found)))
    groups = None if by is None else rows["shop"].to_pandas()
    places = prediction.highest(rows["score"].to_numpy(), 4, groups)
    assert top.rows["row"].to_pylist() == (places + 1).tolist()
    assert max(held) <= 5 * len(places) + 50


def test_a_promise_is_of_the_model_that_gave_it(plain, promised, tmp_path):
    given = plain.guarantee(table_of(2000, seed=7), recall=0.5)
    with pytest.raises(ValueError, match="belongs to another model"):
        promised.with_guarantee(given)
    with pytest.raises(TypeError, match=r"from Model\.guarantee, not 0\.5"):
        plain.with_guarantee(0.5)
    plain.save(tmp_path / "plain.damvi")
    kept = damvi.load(tmp_path / "plain.damvi").with_guarantee(given)
    assert kept.with_guarantee(given).classifier.threshold_ == kept.classifier.threshold_
    assert "of" not in kept.scores["guarantee"]


def test_top_rows_by_several_columns(plain, table):
    with pytest.raises(TypeError, match="must be one column name"):
        plain.predict(table, top=2, by=["shop", "size"])
