"""No windows, and no figure outlives its test."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

from damvi import DAMVIClassifier

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _no_figure_is_left():
    before = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == before


@pytest.fixture(scope="session")
def model(table):
    X, y = table
    names = np.array(["usual", "fraud"])[y]
    return DAMVIClassifier(n_estimators=12, random_state=0).fit(X, names)


@pytest.fixture(scope="session")
def judged(model, fresh):
    """X, y, votes and weights on rows that the model has not seen."""
    y = np.where(fresh[:, 0] + 0.5 * fresh[:, 1] > 1.3, "fraud", "usual")
    return fresh, y, model.cast_votes(fresh), model.weights_
