"""The command in a folder of its own, and a small table to use it on."""

import os
from inspect import signature
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from damvi.cli import main


def run(arguments, env=None):
    """The command, with both outputs apart and together, as click 8.2 gives them."""
    older = "mix_stderr" in signature(CliRunner).parameters
    runner = CliRunner(mix_stderr=False) if older else CliRunner()
    result = runner.invoke(main, [str(word) for word in arguments], env=env)
    return SimpleNamespace(
        exit_code=result.exit_code,
        exception=result.exception,
        stdout=result.stdout,
        stderr=result.stderr,
        output=result.stdout + result.stderr if older else result.output,
    )


def fraud(n=600, seed=0):
    """A messy table of payments; about 12 % are fraud."""
    rng = np.random.default_rng(seed)
    amount = rng.lognormal(3, 1, n).round(2)
    hour = rng.integers(0, 24, n)
    shop = rng.choice(["north", "south", "NA"], n)
    risk = np.log(amount) + 0.1 * np.abs(hour - 12) + (shop == "NA") + rng.normal(size=n)
    when = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.arange(n) * 24 + hour, unit="h")
    return pd.DataFrame(
        {
            "payment_id": np.arange(n) + 5000,
            "amount": [f"{a:,.2f}" for a in amount],
            "when": when.astype(str),
            "shop": shop,
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 80, n)),
            "country": "FR",
            "comment": [f"paid order {i} by card" for i in range(n)],
            "is_fraud": (risk > np.quantile(risk, 0.88)).astype(int),
        }
    )


def crops(n=500, seed=0, labels=("wheat", "maize", "rye", "oats")):
    """Fields and what grows on them; two of the four crops are rare."""
    rng = np.random.default_rng(seed)
    crop = np.arange(n) % 20
    crop = np.select([crop < 11, crop < 16, crop < 18], [0, 1, 2], 3)
    rain = rng.normal(size=n) + 1.5 * (crop % 2)
    sun = rng.normal(size=n) + 2 * (crop > 1)
    return pd.DataFrame(
        {
            "field_id": np.arange(n) + 70,
            "rain": rain.round(3),
            "sun": sun.round(3),
            "soil": rng.choice(["clay", "sand"], n),
            "crop": np.array(labels)[crop],
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def damvi():
    def invoke(*arguments, code=0):
        env = {"COLUMNS": "100", "DAMVI_DATA": "", "DAMVI_CACHE": os.getcwd()}
        result = run(arguments, env)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return invoke


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A model of trees, its data, and new data without the target."""
    path = tmp_path_factory.mktemp("made")
    fraud().to_csv(path / "data.csv", index=False)
    fraud(200, seed=1).drop(columns="is_fraud").to_csv(path / "new.csv", index=False)
    command = ["fit", path / "data.csv", "--target", "is_fraud", "--pool", "trees"]
    command = [*command, "-o", path / "model.damvi", "--quiet"]
    result = run(command)
    assert result.exit_code == 0, (result.output, result.exception)
    return path
