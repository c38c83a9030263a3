"""``damvi datasets`` lists, shows and fetches; what is wrong is said in one line."""

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
    frame = pd.DataFrame({"a": range(20), "b": list("pq") * 10, "y": [1] * 3 + [0] * 17})
    frame.rename(columns={"y": "target"}).to_parquet(tmp_path / "mine.parquet")
    frame.to_csv(tmp_path / "mine.csv", index=False)
    return tmp_path


def test_the_list(run, folder):
    result = run("--data-dir", folder)
    assert result.exit_code == 0
    rows = {line.split()[0]: line.rstrip() for line in result.output.splitlines() if line}
    assert rows["mammography"].endswith("bundled")
    assert "816,099" in rows["pct_imitation"]
    assert rows["mine"].endswith("folder")
    assert "only imitates" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


@pytest.mark.parametrize("before", [True, False])
def test_show_a_dataset_of_a_folder(run, folder, before):
    option = ["--data-dir", folder]
    result = run(*option, "show", "mine") if before else run("show", "mine", *option)
    assert result.exit_code == 0
    assert "3 (15.00%)" in result.output


def test_show_a_file_and_what_was_done_to_it(run, folder):
    result = run("show", folder / "mine.csv", "--target", "y", "--groups", "b")
    assert result.exit_code == 0
    assert "2 groups of rows" in result.output
    result = run("show", folder / "mine.csv", "--target", "b", "--positive", "q")
    assert "'q' is positive (as asked), against 'p'" in result.output


def test_show_sets_the_paper_beside(run):
    assert "in the paper" in run("show", "mammography").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "moons"], "unknown dataset 'moons'"),
        (["show", "credit_fraud"], "Kaggle needs an account"),
        (["show", "gone.csv"], "there is no file gone.csv"),
        (["--data-dir", "gone"], "there is no folder gone"),
        (["show", "FOLDER/mine.csv", "--target", "Y"], "Did you mean 'y'?"),
        (
            ["fetch", "pct_imitation"],
            "'pct_imitation' is not a dataset that can be fetched",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_1(run, folder, arguments, message):
    result = run(*(argument.replace("FOLDER", str(folder)) for argument in arguments))
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert message in result.output
    assert len(result.output.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["show"], ["fetch"], ["nonsense"], ["--nonsense"]])
def test_wrong_usage_is_exit_code_2(run, arguments):
    assert run(*arguments).exit_code == 2


def test_fetch_takes_what_is_cached(run, folder):
    from damvi.datasets.cache import write

    frame = pd.read_parquet(folder / "mine.parquet")
    write(folder / "cache" / "oil.parquet", frame.to_parquet)
    result = run("fetch", "oil")
    assert result.exit_code == 0
    assert result.output == f"oil: {folder / 'cache' / 'oil.parquet'}\n"
