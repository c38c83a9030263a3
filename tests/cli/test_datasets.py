"""``damvi datasets`` lists and fetches; what is wrong is said in one line."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from damvi.cli import main


@pytest.fixture
def run(tmp_path):
    def invoke(*arguments, **env):
        env = {
            "COLUMNS": "80",
            "DAMVI_CACHE": str(tmp_path / "cache"),
            "DAMVI_DATA": "",
        } | env
        return CliRunner().invoke(main, ["datasets", *map(str, arguments)], env=env)

    return invoke


@pytest.fixture
def folder(tmp_path):
    frame = pd.DataFrame({"a": range(20), "target": [1] * 3 + [0] * 17})
    frame.to_parquet(tmp_path / "mine.parquet")
    return tmp_path


def test_the_list(run, folder):
    result = run("--data-dir", folder)
    assert result.exit_code == 0
    rows = {line.split()[0]: line.rstrip() for line in result.output.splitlines() if line}
    assert rows["mammography"].endswith("bundled")
    assert rows["mine"].endswith("folder")
    assert max(map(len, result.output.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fetch", "moons"], "'moons' is not a dataset that can be fetched"),
        (["fetch", "credit_fraud"], "Kaggle requires an account"),
        (["--data-dir", "gone"], "no such folder: gone"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_1(run, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert message in result.output
    assert len(result.output.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["fetch"], ["nonsense"], ["--nonsense"]])
def test_wrong_usage_is_exit_code_2(run, arguments):
    assert run(*arguments).exit_code == 2


def test_fetch_takes_what_is_cached(run, tmp_path):
    cached = tmp_path / "cache" / "oil.parquet"
    cached.parent.mkdir()
    frame = pd.DataFrame(np.zeros((937, 49)), columns=[f"f{j}" for j in range(49)])
    frame.assign(target=np.arange(937) < 41).to_parquet(cached)
    result = run("fetch", "oil")
    assert result.exit_code == 0
    assert result.output == f"oil: {cached}\n"
