"""The options of budgets and guarantees, from fit to info."""

import json
import re

import pandas as pd
import pytest

from .conftest import fraud, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("budgets")
    fraud().to_csv(path / "data.csv", index=False)
    fraud(400, seed=2).to_csv(path / "other.csv", index=False)
    fit = f"fit {path}/data.csv --target is_fraud --pool trees --shuffle"
    for options in ("--metric flags@40 -o budget", "--guarantee recall=0.6 -o sure"):
        done = run(f"{fit} {options.replace('-o ', f'-o {path}/')}.damvi".split())
        assert done.exit_code == 0
    (path / "sure.txt").write_text(done.output)
    return path


def test_a_budget_and_its_top_rows(folder):
    scores = json.loads((folder / "budget.scores.json").read_text())
    assert (scores["metric"], scores["top"]["rows"]) == ("flags@40", 40)
    out, model = folder / "worst.csv", folder / "budget.damvi"
    predict = ["predict", model, folder / "other.csv", "--top", "3", "--by", "shop"]
    done = run([*predict, "-o", out])
    assert "the 3 highest-scoring rows of each 'shop' (9 in total)" in done.output
    found = pd.read_csv(out, keep_default_na=False)
    assert found.groupby("shop").size().tolist() == [3, 3, 3]
    assert found.columns[0] == "row"
    without = run(["predict", model, folder / "other.csv", "--by", "shop"])
    assert without.exit_code == 2
    told = run(["evaluate", model, folder / "other.csv", "--top", "20"])
    assert "Of the 20 highest votes in 400 rows" in told.output
    assert "were hits (90% CI: " in told.output
    costs = ["--cost-miss", "20", "--cost-false-alarm", "1"]
    told = run(["evaluate", model, folder / "other.csv", *costs]).output
    missed, alarms = (
        int(re.search(rf"(\d+) {what}", told)[1]) for what in ("missed", "false alarms")
    )
    assert f"The total cost is {20 * missed + alarms}." in told


def test_a_guarantee_is_told_of(folder):
    fit, told = (
        (folder / "sure.txt").read_text(),
        run(["info", folder / "sure.damvi"]).output,
    )
    assert "600 rows, 180 of them set aside for the guarantee. Target" in fit
    assert " in the other 420: 50 '1' (positive, 11.90%)" in fit
    assert "Out-of-sample estimates at this threshold (not guaranteed): precision" in fit
    own = json.loads((folder / "sure.scores.json").read_text())["guarantee"]["figures"]
    for printed in (fit, told):  # the figures that it decides by come first
        at = printed.index("DAMVI, guaranteed  ")
        assert at < printed.index("DAMVI   ")
        assert f"{own['recall']['value']:.3g}" in printed[at:].splitlines()[0]
        assert "and the comparisons, are at thresholds tuned for f1" in " ".join(
            printed.split()
        )
    assert "are flagged (set by a guarantee)" in told
    assert "A recall of at least 0.6 with 90% confidence (by 22 positives)" in told
    new = folder / "precise.damvi"
    evaluate = ["evaluate", folder / "sure.damvi", folder / "other.csv"]
    told = run(evaluate).output
    assert "Guaranteed: recall of at least 0.6 with 90% confidence. Here it is 0." in told
    assert "not what was promised" not in told
    worse = fraud(400, seed=2).assign(amount=0.0)  # what it looks at says nothing any more
    worse.to_csv(folder / "worse.csv", index=False)
    told = run([*evaluate[:2], folder / "worse.csv"]).output
    assert "does not hold here, so these rows differ" in told
    done = run([*evaluate, "--guarantee", "precision=0.2", "-o", new])
    assert done.exit_code == 0
    assert "A precision of at least 0.2" in run(["info", new]).output
    for options, why in (
        (["--guarantee", "recall=0.99", "-o", folder / "none.damvi"], "230 are needed"),
        (["--guarantee", "recall"], "is unknown"),
        (["-o", folder / "none.damvi"], "add --guarantee"),
    ):
        failed = run([*evaluate, *options])
        assert failed.exit_code != 0
        assert why in failed.output
    assert not (folder / "none.damvi").exists()
