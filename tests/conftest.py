"""A small imbalanced table, and hypothesis without deadlines (the cores are shared)."""

import os

if "PYTEST_XDIST_WORKER" in os.environ:  # workers share the cores: a thread each
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from damvi.weighting import Settings, minimize_c_bound

# What kills processes and bounds their memory is asked of POSIX alone.
collect_ignore_glob = (
    ["fuzz/*", "faults/*", "cli/test_whole_files.py", "cli/test_signals.py"]
    if os.name == "nt"
    else []
)

settings.register_profile(
    "damvi",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("damvi")


def imbalanced(n, seed):
    """Four features, about 15 % positives, some noise in the labels."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 4))
    y = (X[:, 0] + 0.5 * X[:, 1] + 0.6 * rng.normal(size=n) > 1.3).astype(int)
    return X, y


def weigh(votes, how=Settings()):  # noqa: B008
    """Steps 2 and 3 on any votes."""
    return minimize_c_bound(votes, how.moments_by_fold(votes), how)


@pytest.fixture(scope="session")
def table():
    X, y = imbalanced(300, seed=0)
    X.flags.writeable = y.flags.writeable = False
    return X, y


@pytest.fixture(scope="session")
def fresh():
    """Rows of the same kind that no model here was trained on."""
    X, _ = imbalanced(400, seed=1)
    X.flags.writeable = False
    return X
