"""Every example of the guide and of the README runs, and prints what the page says.

Each page runs in a folder of its own, with the small tables that the pages name, its Python
in one namespace. The strong pool, which takes minutes, is a small one here.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import tomllib
import warnings

import matplotlib as mpl
import pytest

from damvi.cli import main

from ..cli.conftest import crops, fraud, run
from .pages import PAGES, ROOT, blocks, difference

pytestmark = pytest.mark.skipif(not PAGES, reason="the guide is not part of the package")

EXTRAS = re.compile(r"damvi\[([\w,]+)\]|\.\[([\w,]+)\]")


def small_pool(random_state=None, y=None, **_):
    """In place of the strong pool."""
    from lightgbm import LGBMClassifier
    from sklearn.pipeline import make_pipeline

    from damvi.voters import FastForestClassifier, NumberEncoder

    seed = random_state
    boosted = LGBMClassifier(n_estimators=20, n_jobs=1, random_state=seed, verbose=-1)
    return [
        ("lightgbm", make_pipeline(NumberEncoder(), boosted)),
        ("forest", FastForestClassifier(30, n_jobs=1, random_state=seed)),
        (
            "balanced_forest",
            FastForestClassifier(30, balanced=True, n_jobs=1, random_state=seed),
        ),
    ]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """What the pages find in their folder: tables of payments, and a model of trees."""
    path = tmp_path_factory.mktemp("guide")
    fraud().to_csv(path / "data.csv", index=False)
    fraud(400, seed=2).to_csv(path / "other.csv", index=False)
    fraud(200, seed=1).drop(columns="is_fraud").to_csv(path / "new.csv", index=False)
    crops().to_csv(path / "crops.csv", index=False)
    part = fraud().astype({"is_fraud": object})
    part.loc[300:, "is_fraud"] = ""
    part.to_csv(path / "part.csv", index=False)
    (path / "payments").mkdir()
    for month in (1, 2):
        fraud(300, seed=month).to_parquet(path / f"payments/2025-{month:02}.parquet")
    renamed = {"is_fraud": "fraud", "payment_id": "claim"}
    fraud().rename(columns=renamed).to_csv(path / "claims.csv", index=False)
    for example in (ROOT / "examples/service").glob("*.py"):
        shutil.copy(example, path)
    command = f"fit {path}/data.csv --target is_fraud --pool trees -o {path}/model.damvi"
    assert run(shlex.split(command)).exit_code == 0
    return path


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run(page, tables, tmp_path, monkeypatch):
    shutil.copytree(tables, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as a script's own folder is
    mpl.use("agg")
    monkeypatch.setattr("damvi.voters.strong_pool", small_pool)
    monkeypatch.setattr(
        "damvi.voting.strong_pool_for", lambda X, y, seed, **_: small_pool(seed, y)
    )
    names = {"__name__": page.stem}
    for block in blocks(page.read_text(encoding="utf-8")):
        where = f"{page.name}, line {block.line}"
        if block.language == "python":
            code = compile(block.code, where, "exec")
            printed = "" if block.not_run else run_python(code, names)
        else:
            # A page that tells a warning tells all that a terminal shows.
            warns = (block.output or "").startswith("Warning: ")
            ran = [run_line(line, where, block.not_run, warns) for line in lines(block)]
            printed = "".join(ran)
        if block.output is not None and not block.not_run:
            assert (wrong := difference(block.output, printed)) is None, f"{where}: {wrong}"


@pytest.mark.parametrize("tool", ["mlflow", "shap"])
def test_examples_of_tools_that_few_have(tool, tables, tmp_path, monkeypatch):
    pytest.importorskip(tool, reason=f"{tool} is not installed")
    shutil.copytree(tables, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs/other_tools.md"
    found = [one for one in blocks(page.read_text("utf-8")) if one.language == "python"]
    (block,) = [one for one in found if f"import {tool}" in one.code]
    printed = run_python(compile(block.code, page.name, "exec"), {"__name__": tool})
    assert difference(block.output, printed) is None, printed


def run_python(code, names):
    with contextlib.redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # damvi's own, meant for the reader
        exec(code, names)
    return printed.getvalue()


def lines(block):
    """The commands of a block, without comments."""
    whole = block.code.replace("\\\n", " ")
    return [
        words for line in whole.splitlines() if (words := shlex.split(line, comments=True))
    ]


def run_line(words, where, not_run, warns=False):
    """Run a ``damvi`` command; of others, check that what they name is there."""
    if words[0] == "damvi":
        if not_run:
            parse(words[1:])
            return ""
        env = {"COLUMNS": "100", "DAMVI_DATA": "", "DAMVI_CACHE": os.getcwd()}
        result = run(words[1:], env)
        assert result.exit_code == 0, (where, words, result.output, result.exception)
        return result.stderr + result.stdout if warns else result.stdout
    check_named(words, where)
    return ""


def parse(arguments):
    """Let click look for mistakes in a command, without running it."""
    command = main
    while hasattr(command, "commands"):
        name, command, arguments = command.resolve_command(None, arguments)
        arguments = [word.replace("FOLDER", ".") for word in arguments]
    command.make_context(name, arguments)


def check_named(words, where):
    """That a target of make, or an extra of pip, exists."""
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        for target in words[1:]:
            script = ROOT / "benchmarks" / f"{target.removeprefix('bench-')}.py"
            known = re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE)
            assert known or script.exists(), f"{where}: no target {target}"
        return
    assert words[:2] == ["pip", "install"], (
        f"{where}: not a command that is checked: {words}"
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    for match in EXTRAS.finditer(" ".join(words)):
        for extra in (match[1] or match[2]).split(","):
            assert extra in project["optional-dependencies"], f"{where}: no extra {extra}"
