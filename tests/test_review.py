"""Rows for a person to look at: which, in what order, and why."""

import json

import numpy as np
import pandas as pd
import pytest

import damvi
from damvi.review import chance_wrong, label_noise

from .cli import conftest


def run(*words, code=0):
    result = conftest.run(words, {"COLUMNS": "200"})
    assert result.exit_code == code, result.output
    return result.output


def table(n=300, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    made = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    made.insert(0, "nr", np.arange(n) + 1000)
    cuts = [1.0] if classes == 2 else [-0.5, 1.0]
    place = np.digitize(made["a"] + 0.2 * rng.normal(size=n), cuts)
    names = ["no", "yes"] if classes == 2 else ["mid", "low", "top"]
    made["y"] = np.array(names)[place]
    return made


@pytest.fixture(scope="module")
def two():
    return damvi.fit(table(), "y", pool="trees")


@pytest.fixture(scope="module")
def three():
    return damvi.fit(table(classes=3), "y", pool="trees")


def test_noise_is_found_where_it_is():
    rng = np.random.default_rng(0)
    truth = (rng.random(4000) < 0.1).astype(int)
    labels = np.where((truth == 1) & (rng.random(4000) < 0.2), 0, truth)
    p = np.clip(np.where(truth == 1, 0.78, 0.01) + 0.02 * rng.normal(size=4000), 0.001, 1)
    noise = label_noise(labels, np.column_stack([1 - p, p]))
    assert 0.1 < noise[0, 1] < 0.3
    assert noise[1, 0] < 0.01
    np.testing.assert_allclose(noise.sum(axis=0), 1)
    only = label_noise(labels, np.column_stack([1 - p, p]), only=0)
    assert only[1, 0] == 0
    wrong = chance_wrong(labels, np.column_stack([1 - p, p]), only=0)
    assert (wrong[labels == 1] == 0).all()
    first = np.argsort(-wrong)[: (labels != truth).sum()]
    assert (labels != truth)[first].all()


def test_a_flipped_label_is_found_first():
    made = table()
    row = int(made["a"].argmax())
    made.loc[row, "y"] = "no"
    found = damvi.fit(made, "y", pool="trees").review(made, 5, id="nr")
    first = found.rows.iloc[0]
    assert (first["row"], first["nr"]) == (row + 1, made["nr"][row])
    assert first["why"] == "the vote says 'yes'"
    assert first["chance wrong"] == found.rows["chance wrong"].max()
    assert (found.rows["label"] == "no").all()
    assert "300 rows are training rows, scored by voters" in found.words[0]


def test_any_label_may_be_doubted(two):
    made = table(seed=1)
    row = int(made["a"].argmin())
    made.loc[row, "y"] = "yes"
    assert row + 1 not in set(two.review(made).rows["row"])
    doubted = two.review(made, doubt="any").rows
    assert doubted.set_index("row").loc[row + 1, "chance wrong"] > 0.5
    assert doubted["chance wrong"].is_monotonic_decreasing


def test_rows_without_a_label_say_why_they_are_chosen(two):
    new = table(seed=2).drop(columns="y")
    found = two.review(new, 6, columns=["a"])
    assert list(found.rows) == ["row", "a", "score", "probability", "decision", "why"]
    judged = two.predict(new)
    order = np.argsort(-judged["score"].to_numpy(), kind="stable")  # ties in their order
    assert found.rows["row"].tolist() == (order[:6] + 1).tolist()
    assert len(two.review(new, 1)) == 1
    whole = two.review(new, 10_000).rows
    assert whole["row"].tolist() == (order + 1).tolist()
    flagged = int((judged["decision"] == "yes").sum())
    assert set(whole["why"][:flagged]) == {"flagged as 'yes'"}
    told = r"below the threshold; \d+% of the vote is for 'yes'"
    assert whole["why"][flagged : flagged + 3].str.fullmatch(told).all()
    assert whole["why"].iloc[-1] == "below the threshold; next most likely"
    assert len(json.dumps(found.as_dict())) > 100


def test_both_kinds_of_rows_share_the_budget(two):
    made = table(seed=1)
    made["y"] = made["y"].where(np.arange(300) % 2 == 0)
    wrong = made.index[(made["a"] > 1.2) & (made["y"] == "yes")][:4]
    made.loc[wrong, "y"] = "no"
    found = two.review(made, 6).rows
    assert found["label"].notna().tolist() == [True] * 3 + [False] * 3
    assert found["chance wrong"].notna().tolist() == [True] * 3 + [False] * 3
    many = two.review(made, 20).rows  # few labels are in doubt: others take their place
    assert len(many) == 20
    assert 4 <= many["label"].notna().sum() < 10


def test_training_rows_without_their_label_are_not_asked_for(two):
    found = two.review(table().drop(columns="y"))
    assert len(found) == 0
    words = "300 training rows were skipped: the label is known from the fit."
    assert found.words[-1] == words


@pytest.mark.slow
def test_three_classes(three):
    made = table(seed=1, classes=3)
    row = int(made["a"].argmax())
    made.loc[row, "y"] = "low"  # the most frequent
    found = three.review(made, 9).rows.set_index("row")
    assert found.loc[row + 1, "why"] == "the vote says 'top'"
    assert (found["label"] == "low").all()
    found = three.review(made.drop(columns="y"), 300).rows
    usual = found["decision"] == "low"
    assert (found["why"][~usual] == "flagged as '" + found["decision"][~usual] + "'").all()
    assert found["why"][usual].str.startswith("below the threshold").all()
    assert usual.iloc[-100:].mean() > 0.9 > 0.1 > usual.iloc[:100].mean()


def test_what_cannot_be_reviewed_is_named(two):
    made = table(seed=1)
    for budget in (0, 2.5, True):
        with pytest.raises(ValueError, match="must be a whole number of rows"):
            two.review(made, budget)
    with pytest.raises(ValueError, match="doubt='all' must be 'missed' or 'any'"):
        two.review(made, doubt="all")
    with pytest.raises(ValueError, match="no column 'id' to carry along"):
        two.review(made, id="id")
    with pytest.raises(ValueError, match="already has a column 'score'"):
        two.review(made.assign(score=1), columns="score")
    with pytest.raises(ValueError, match="no target column 'z'"):
        two.review(made, target="z")
    with pytest.raises(ValueError, match="column is missing: 'a'"):
        two.review(made.drop(columns="a"))


def test_command_and_folders_give_the_same_rows(two, tmp_path):
    made, model = table(seed=1), tmp_path / "m.damvi"
    made.loc[int(made["a"].argmax()), "y"] = "no"
    two.save(model)
    made.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "parts").mkdir()
    made[:100].to_parquet(tmp_path / "parts" / "0.parquet")
    made[100:].to_parquet(tmp_path / "parts" / "1.parquet")
    out = tmp_path / "out.csv"
    text = run("review", model, tmp_path / "t.csv", "--budget", 4, "--id", "nr", "-o", out)
    assert "the vote says 'yes'" in text
    expected = two.review(made, 4, id="nr").rows
    pd.testing.assert_frame_equal(pd.read_csv(out), expected)
    pd.testing.assert_frame_equal(two.review(tmp_path / "parts", 4, id="nr").rows, expected)
    plain = json.loads(run("review", model, tmp_path / "t.csv", "--json"))
    assert plain["rows"][0]["row"] == expected["row"].iloc[0]
