"""One object from a raw table to a decision, in Python as by the command."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import damvi
from damvi.decision.objectives import Objective
from damvi.model import as_metric, comparison, parse_metric

from ..cli.conftest import crops, fraud, run

POOL = [("bayes", GaussianNB()), ("linear", LogisticRegression())]


@pytest.fixture(autouse=True)
def without_lightgbm(monkeypatch):
    monkeypatch.setattr(comparison, "can_load", lambda name: False)  # it takes long


def payments(n=300):
    """Numbers, categories and text that are the same in a file."""
    return fraud(n).assign(shop=fraud(n)["shop"].replace("NA", "web"))


def numbers(n=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    return frame.assign(y=(frame["a"] + rng.normal(size=n) > 1.5).astype(int))


@pytest.fixture(scope="module")
def model():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "can_load", lambda name: False)
        return damvi.fit(payments(), "is_fraud", pool="trees", n_jobs=1)


def same(one, other):
    """All that two models hold, bit by bit, but for how they were made."""
    for name in ("hashes", "vote", "labels"):
        ours, theirs = (getattr(m.training, name) for m in (one, other))
        assert ours.tobytes() == theirs.tobytes()
    assert one.schema == other.schema
    assert one.target == other.target
    assert repr(one.scores) == repr(other.scores)
    assert one.classifier.weights_.tobytes() == other.classifier.weights_.tobytes()
    assert repr(one.classifier.get_params()) == repr(other.classifier.get_params())
    assert one.classifier.threshold_ == other.classifier.threshold_


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_command_gives_the_same_model(model, tmp_path, kind):
    data, out = tmp_path / f"data.{kind}", tmp_path / "model.damvi"
    frame = payments()
    frame.to_csv(data, index=False) if kind == "csv" else frame.to_parquet(data)
    command = ["fit", data, "--target", "is_fraud", "--pool", "trees", "--jobs", 1]
    assert run([*command, "-o", out, "--quiet"]).exit_code == 0
    by_command = damvi.load(out)
    same(by_command, model)
    model.save(tmp_path / "python.damvi")
    again = damvi.load(tmp_path / "python.damvi")
    same(again, model)
    rows = model.schema.encode(frame)
    votes = [one.classifier.vote(rows).tobytes() for one in (model, again, by_command)]
    assert len(set(votes)) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::damvi.drift.DriftWarning")
def test_the_command_gives_the_same_strong_model(tmp_path):
    frame, data, out = payments(240), tmp_path / "data.csv", tmp_path / "model.damvi"
    frame.to_csv(data, index=False)
    model = damvi.fit(frame, "is_fraud", n_jobs=1)
    command = ["fit", data, "--target", "is_fraud", "--jobs", 1, "-o", out, "--quiet"]
    assert run(command).exit_code == 0
    by_command = damvi.load(out)
    same(by_command, model)
    rows = model.schema.encode(fraud(100, seed=1))
    votes = [one.classifier.vote(rows).tobytes() for one in (model, by_command)]
    assert votes[0] == votes[1]
    fraud(100, seed=1).to_csv(tmp_path / "new.csv", index=False)
    words = ["predict", out, tmp_path / "new.csv", "-o", tmp_path / "out.csv", "--quiet"]
    assert run(words).exit_code == 0
    written = pd.read_csv(tmp_path / "out.csv").astype({"decision": int})
    found = model.predict(fraud(100, seed=1))
    pd.testing.assert_frame_equal(written, found, check_exact=True)


@pytest.mark.filterwarnings("ignore::damvi.drift.DriftWarning")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_command_gives_the_same_predictions(model, tmp_path, kind):
    new = fraud(200, seed=1).drop(columns="is_fraud")
    data, out = tmp_path / f"new.{kind}", tmp_path / f"out.{kind}"
    new.to_csv(data, index=False) if kind == "csv" else new.to_parquet(data)
    model.save(tmp_path / "model.damvi")
    words = ["predict", tmp_path / "model.damvi", data, "-o", out, "--id", "payment_id"]
    assert run([*words, "--quiet"]).exit_code == 0
    written = pd.read_csv(out) if kind == "csv" else pd.read_parquet(out)
    found = model.predict(new, id="payment_id")
    assert list(found) == ["payment_id", "score", "probability", "decision"]
    assert found["decision"].dtype.kind == "i"
    assert set(found["decision"]) == {0, 1}
    written["decision"] = written["decision"].astype(int)
    pd.testing.assert_frame_equal(written, found, check_exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["arrow", "polars", "path"])
def test_tables_of_other_libraries(tmp_path, kind):
    frame = numbers()
    usual = damvi.fit(frame, "y", pool="trees")
    if kind == "arrow":
        given = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    elif kind == "polars":
        given = pytest.importorskip("polars").DataFrame(frame.to_dict("list"))
    else:
        given = str(tmp_path / "data.csv")
        frame.to_csv(given, index=False)
    same(damvi.fit(given, "y", pool="trees"), usual)


def test_what_is_no_table_is_refused():
    with pytest.raises(TypeError, match="not ndarray; for numpy arrays use"):
        damvi.fit(np.zeros((5, 2)), "y")
    with pytest.raises(ValueError, match="has no rows"):
        damvi.fit(numbers().iloc[:0], "y")
    twice = pd.concat([numbers(), numbers()], axis=1)
    with pytest.raises(ValueError, match="more than one column named 'a'"):
        damvi.fit(twice, "y")
    with pytest.raises(ValueError, match="random_state=-1 must be a whole number"):
        damvi.fit(numbers(), "y", random_state=-1)
    with pytest.raises(ValueError, match="unknown pool='tree'; use strong, trees"):
        damvi.fit(numbers(), "y", pool="tree")


@pytest.mark.parametrize(
    ("labels", "given"),
    [
        ([0, 1], [0, 1]),
        ([False, True], [False, True]),
        ([0.0, 1.0], [0.0, 1.0]),
        (["no", "yes"], ["no", "yes"]),
        (["0", "1"], ["0", "1"]),
        (pd.array([3, 7], "Int64"), [3, 7]),
    ],
)
def test_labels_keep_their_kind(labels, given):
    rare = (np.arange(60) % 5 == 0).astype(int)
    frame = numbers(60).assign(y=pd.Series(labels)[rare].to_numpy())
    found = damvi.model.prepare(frame, "y").target.as_given()
    assert found == given
    assert [type(label) for label in found] == [type(label) for label in given]


def test_names_as_python_users_give_them():
    frame = numbers().set_axis(["a", "b", "c", 3], axis="columns")
    found = damvi.fit(frame, 3, pool="trees", drop="c", n_jobs=1)
    assert [column.kind for column in found.schema.columns] == ["number"] * 2 + ["dropped"]
    assert found.predict(frame, columns="a").columns[0] == "a"
    assert not found.drift(frame).warnings  # a table without dates


@pytest.mark.parametrize("top", [0, -3, 1.5, 0.02, "abc", True])
def test_a_number_of_top_rows_that_is_none(model, top):
    rows = payments()
    unlabelled = rows.drop(columns=model.target.name)
    for table in (rows, unlabelled):
        for ask in (model.predict, partial(model.compare, model)):
            with pytest.raises(ValueError, match=r"top=.*whole number of rows, at least 1"):
                ask(table, top=top)
    with pytest.raises(ValueError, match=r"top=.*whole number of rows, at least 1"):
        model.evaluate(rows, top=top)


def test_one_row_is_no_table(model):
    with pytest.raises(TypeError, match="not Series"):
        model.predict(payments().iloc[0])


def test_in_time_and_shuffled_at_once():
    with pytest.raises(ValueError, match="time='a' and shuffle contradict each other"):
        damvi.fit(numbers(), "y", time="a", shuffle=True, pool="trees")


def test_one_class_against_all_others_is_told_in_words():
    frame = numbers(60).assign(y=np.arange(60) % 3)
    assert damvi.model.prepare(frame, "y", 2).target.as_given() == ["not 2", "2"]


def test_representations(model):
    first, second, *told, last = repr(model).splitlines()
    assert (
        first
        == "Model of 'is_fraud': '1' against '0' in 300 rows, 36 of them positive (12.00%)"
    )
    assert second.startswith("  out of sample, forward in time (the first 116 rows")
    assert told == [f"  {line}" for line in model.verdict.splitlines()]
    assert last.startswith("  The rows are sorted by 'when'")
    assert "<td>" in model._repr_html_()
    assert (
        "<b>"
        not in damvi.fit(
            crops().assign(crop=crops()["crop"] + "<b>"), "crop", pool="trees"
        )._repr_html_()
    )


def test_the_leaderboard_of_trees(tmp_path):
    model = damvi.fit(numbers(), "y", pool="trees")
    board = model.leaderboard()
    assert list(board) == ["AP", "F1", "cost", "seconds", "weight"]
    assert all(dtype.kind == "f" for dtype in board.dtypes)
    assert len(board) == 103  # trees, two votes of all, and a plain forest
    assert board["F1"].is_monotonic_decreasing
    assert board["weight"].sum() == pytest.approx(1)
    own = model.scores["models"]["DAMVI"]
    assert board.loc["weighted vote", "AP"] == pytest.approx(own["ap"]["value"])
    assert board.loc["weighted vote", "F1"] == pytest.approx(own["f1"]["value"])
    model.save(tmp_path / "model.damvi")
    pd.testing.assert_frame_equal(damvi.load(tmp_path / "model.damvi").leaderboard(), board)


def test_a_pool_of_ones_own_with_weights():
    frame = numbers().assign(count=np.arange(300) % 3 + 1)
    found = damvi.fit(frame, "y", pool=POOL, sample_weight="count", threshold="ap")
    board = found.leaderboard()
    names = {"bayes", "linear", "weighted vote", "plain vote", "best single model"}
    assert set(board.index) == names
    assert (board["seconds"].drop("best single model") > 0).all()
    assert board["AP"].is_monotonic_decreasing
    assert found.schema.features == ["a", "b", "c"]
    assert found.made["pool"] == "own"
    assert (
        "damvi.fit(table, 'y', sample_weight='count', pool=[...]" in found.made["command"]
    )
    plain = damvi.fit(frame, "y", pool=POOL, drop=["count"], threshold="ap")
    assert not np.array_equal(plain.training.vote, found.training.vote)


def test_a_pool_of_one_voter_is_not_compared_with_itself(monkeypatch):
    one = [("lightgbm", GaussianNB())]
    monkeypatch.setattr(damvi.voting, "strong_pool_for", lambda *a, **k: one)
    found = damvi.fit(numbers(), "y")
    assert "LightGBM" in found.scores["models"]
    assert not any(
        "LightGBM" in said or "pool" in said for said in found.scores["verdicts"]
    )
    assert str(found)


def test_the_best_single_model_is_judged_without_the_choice(monkeypatch):
    monkeypatch.setattr(damvi.voting, "strong_pool_for", lambda *a, **k: POOL)
    found = damvi.fit(numbers(), "y", pool="best")
    assert len(found.classifier.weights_) == 1
    assert found.made["best"] in dict(POOL)
    verdicts = found.scores["verdicts"]
    assert "the weighted vote" in verdicts[-1]
    assert not any("--pool best" in said for said in verdicts)
    board = found.leaderboard()
    own = found.scores["models"]["DAMVI"]["ap"]["value"]
    assert own == pytest.approx(board.loc["best single model", "AP"])
    strong = damvi.fit(numbers(), "y", pool="strong")
    assert len(strong.classifier.weights_) == 2
    assert strong.scores["verdicts"][-1] == comparison.SINGLE_MODEL.format("as well")
    assert "A single model does as well here: use pool='best'." in str(strong)


def test_a_budget_compares_models_at_as_many_flags():
    frame = numbers(600)
    found = damvi.fit(frame, "y", pool=POOL, threshold={"flags": 60})
    verdicts = found.scores["verdicts"]
    assert not any("pool best" in said for said in verdicts)
    board = found.leaderboard()
    # Of as many flags F1 is a matter of hits alone.
    hits = board["F1"] * (60 + frame["y"].sum()) / 2
    assert np.allclose(hits, hits.round())
    own = 60 * found.scores["top"]["precision"]["value"]
    assert hits["weighted vote"] == pytest.approx(own, abs=1)
    flagged = [said for said in verdicts if "learned on other rows" in said]
    assert all("instead of 60. The comparisons" in said for said in flagged)
    single = [said for said in verdicts if said.startswith("A single model")]
    assert all("The best of your voters: " in said for said in single)
    assert found.verdict.splitlines() == verdicts
    assert f"\n  {verdicts[0]}\n" in f"{found}\n"
    assert "best single model" in found.verdict


def test_many_equal_models_are_no_better_for_being_chosen(monkeypatch):
    """Of many that know nothing the best looks good; not so where the choice counts."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 12)), columns=list("abcdefghijkl"))
    frame["y"] = rng.random(300) < 0.2
    pool = [(name, OneColumn(k)) for k, name in enumerate("abcdefghijkl")]
    monkeypatch.setattr(damvi.voting, "strong_pool_for", lambda *a, **k: pool)
    found = damvi.fit(frame, "y", pool="best", threshold="ap")
    own, rate = found.scores["models"]["DAMVI"]["ap"]["value"], frame["y"].mean()
    assert found.leaderboard().loc[found.made["best"], "AP"] > max(rate, own) + 0.01
    assert abs(own - rate) < 0.05


class OneColumn(LogisticRegression):
    """A model that looks at one column."""

    def __init__(self, column=0):
        super().__init__()
        self.column = column

    def fit(self, X, y):
        return super().fit(X.iloc[:, [self.column]], y)

    def predict_proba(self, X):
        return super().predict_proba(X.iloc[:, [self.column]])


@pytest.mark.parametrize(
    ("threshold", "name"),
    [
        (None, "f1"),
        ("f1", "f1"),
        ("ap", "ap"),
        ("recall@0.9", "recall@0.9"),
        ({"recall": 0.9}, "recall@0.9"),
        ({"precision": 0.5}, "precision@0.5"),
        ({"flags": 200}, "flags@200"),
        ({"flags": (5, 100)}, "flags@5/100"),
        ("flags@1%", "flags@1%"),
        ({"cost": (1, 20)}, "cost"),
        ({"cost": [[0, 1], [20, 0]]}, "cost"),
        (("fbeta", 2), "f2"),
        (0.25, "f1"),
        ("vote", "f1"),
    ],
)
def test_thresholds_in_any_words(threshold, name):
    metric = as_metric(threshold, damvi.tables.Target("y", "0", "1"), 1000)
    assert metric.name == name
    damvi.decision.parse_objective(metric.threshold)
    if name == "cost":
        assert metric == parse_metric("cost", (1.0, 20.0))


def test_an_objective_of_ones_own_is_named_as_such():
    class Informedness(Objective):
        name = "informedness"

        def value(self, counts):
            return counts.recall - counts.alarms / counts.negatives

    target = damvi.tables.Target("y", "0", "1")
    metric = as_metric(Informedness(), target, 1000)
    assert (metric.name, metric.measure) == ("informedness", "f1")
    assert isinstance(metric.threshold, Informedness)


def test_thresholds_that_do_not_go_with_the_classes():
    many = damvi.tables.TargetOfMany("y", classes=("a", "b", "c"))
    assert as_metric([1, 2, 3], many, 9).threshold == [1, 2, 3]
    assert as_metric("macro_ap", many, 9).name == "macro_ap"
    with pytest.raises(ValueError, match="is for two classes, but 'y' has 3"):
        as_metric("recall@0.9", many, 9)
    costs = {"cost": (np.ones(5), np.ones(5))}
    with pytest.raises(ValueError, match="costs per row only work with the estimators"):
        as_metric(costs, damvi.tables.Target("y", "0", "1"), 9)


def test_warnings_of_the_table_are_warned_of_and_kept():
    frame = numbers().assign(copy=lambda frame: frame["y"] * 2)
    with pytest.warns(UserWarning, match="LEAKAGE: 'copy'"):
        found = damvi.fit(frame, "y", pool="trees")
    assert "LEAKAGE: 'copy'" in repr(found)
    assert "LEAKAGE: &#x27;copy&#x27;" in found._repr_html_()


@pytest.mark.slow
def test_an_evaluation_is_that_of_the_command(model, tmp_path):
    frame = fraud(200, seed=1).assign(truth=fraud(200, seed=1)["is_fraud"])
    frame["truth"] = frame["truth"].where(frame.index > 4)
    frame.drop(columns="is_fraud").to_csv(tmp_path / "new.csv", index=False)
    found = model.evaluate(frame, target="truth", cost=(1, 20))
    assert found.dropped == 5
    assert list(found.table) == ["value", "low", "high"]
    assert "All 195 rows are new to the model." in repr(found)
    assert "<td>" in found._repr_html_()
    model.save(tmp_path / "model.damvi")
    command = ["evaluate", tmp_path / "model.damvi", tmp_path / "new.csv", "--json"]
    said = run([*command, "--target", "truth", "--cost-miss", "20"])
    assert json.loads(said.stdout) == found.as_dict()
    many = damvi.fit(crops(), "crop", pool="trees")
    with pytest.raises(ValueError, match="costs are for two classes, but 'crop' has 4"):
        many.evaluate(crops(), cost=(1, 20))
    table = many.evaluate(crops()).table
    own = many.scores["models"]["DAMVI"]["macro_f1"]["value"]
    assert table.loc["macro F1", "value"] == pytest.approx(own)


@pytest.mark.slow
def test_a_report_and_an_explanation(model, tmp_path):
    summary = model.report(payments(), tmp_path / "page.html", name="my payments")
    assert "my payments" in (tmp_path / "page.html").read_text(encoding="utf-8")
    json.dumps(summary)
    explained = model.explain(payments(), rows=[3])
    assert explained.as_dict()["rows"][0]["row"] == 3


def test_a_folder_of_parquet_is_read_in_blocks(tmp_path):
    words = np.random.default_rng(0).choice(["red", "old", "lost", "late", "new"], (300, 8))
    frame = numbers().assign(text=[" ".join(row) for row in words])
    for part in range(2):
        frame.iloc[part::2].to_parquet(tmp_path / f"{part}.parquet", index=False)
    found = damvi.fit(tmp_path, "y")
    assert "text" in [column.name for column in found.schema.used]
    assert found.made["pool"] == "trees"
    assert found.target.as_given() == [0, 1]
    with pytest.raises(ValueError, match="group needs all rows in memory"):
        damvi.fit(tmp_path, "y", group="a")


def test_messages_are_in_the_words_of_python():
    frame = numbers().assign(kind=np.arange(300) % 3)
    with pytest.raises(ValueError, match=r"name the positive class with pos_label=$"):
        damvi.fit(frame, "kind", threshold="ap")
    labels = np.where(frame["y"] == 1, "Bad", "good")
    labels[np.flatnonzero(frame["y"] == 1)[:5]] = "bad"
    frame = frame.drop(columns=["y", "kind"]).assign(y=labels)
    with pytest.warns(UserWarning, match="merge them with merge_labels=True"):
        damvi.fit(frame, "y", pos_label="Bad", pool="trees")
    days = pd.date_range("2024-01-01", periods=300).astype(str)
    with pytest.warns(UserWarning, match="merge them"):
        model = damvi.fit(frame.assign(day=days), "y", pos_label="Bad", pool="trees")
    assert "use shuffle=True." in repr(model)
    assert "--" not in repr(model)


def test_a_lazy_table_is_collected_first():
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"pass table.collect\(\)"):
        damvi.fit(polars.DataFrame(numbers().to_dict("list")).lazy(), "y")


def test_early_rows_without_weight_and_few_groups():
    frame = numbers(400).assign(t=np.arange(400), w=1.0 * (np.arange(400) > 200))
    how = {"pool": "trees", "sample_weight": "w", "drop": ["g"]}
    with pytest.raises(ValueError, match=r"all have weight 0.*shuffle=True"):
        damvi.fit(frame.assign(g=0), "y", time="t", **how)
    with pytest.warns(UserWarning, match="only 3 groups"):
        damvi.fit(frame.assign(g=np.arange(400) % 3), "y", group="g", pool="trees")


@pytest.mark.parametrize("threshold", ["vote", 0.1])
def test_a_pool_takes_a_threshold_as_it_is(threshold):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    table["y"] = np.where(table["a"] + 0.3 * rng.normal(size=200) > 0.3, "yes", "no")
    model = damvi.fit(table, "y", pool=POOL, threshold=threshold)
    assert threshold == "vote" or model.classifier.threshold_ == threshold
    assert len(model.leaderboard()) >= 4


def test_equal_votes_are_flagged_in_no_order_of_the_file():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300, 2)), columns=list("ab"))
    table["y"] = np.where(np.arange(300) < 60, "yes", "no")  # the positives come first
    table["a"] += 2.0 * (table["y"] == "yes")
    pool = [("none", DummyClassifier()), ("bayes", GaussianNB())]
    model = damvi.fit(table, "y", pool=pool, threshold={"flags": 60})
    assert model.leaderboard()["F1"]["none"] < 0.4


def test_a_table_without_any_label_cannot_be_evaluated(model):
    with pytest.raises(ValueError, match=r"missing in every row; .* predict or drift"):
        model.evaluate(payments().assign(is_fraud=None))
