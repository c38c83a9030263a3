"""What all Displays have in common, in scikit-learn's manner."""

import io
import sys

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIVotingClassifier
from damvi.plots import (
    DisagreementDisplay,
    KappaErrorDisplay,
    MarginsDisplay,
    WeightsDisplay,
)

CASES = [
    (DisagreementDisplay, {"order": "weight"}),
    (DisagreementDisplay, {"order": "clusters"}),
    (KappaErrorDisplay, {}),
    (MarginsDisplay, {"kind": "cumulative"}),
    (MarginsDisplay, {"kind": "histogram"}),
    (WeightsDisplay, {}),
]
every_display = pytest.mark.parametrize(
    ("Display", "options"),
    CASES,
    ids=[" ".join([case[0].__name__, *case[1].values()]) for case in CASES],
)

EDGES = {
    "one voter": (np.array([[1], [-1], [-1]]), [1, 0, 0]),
    "two voters": (np.array([[1, 1], [-1, 1], [-1, -1]]), [1, 0, 0]),
    "identical voters": (np.array([[1] * 4, [-1] * 4, [-1] * 4]), [1, 0, 1]),
    "all right": (np.array([[1] * 4, [-1] * 4, [-1] * 4]), [1, 0, 0]),
    "constant votes": (np.full((3, 4), -1), [1, 0, 0]),
    "positives only": (np.array([[1, -1, 1], [1, 1, 1]]), [1, 1]),
    "negatives only": (np.array([[1, -1, 1], [1, 1, 1]]), [0, 0]),
    "soft votes": (np.array([[0.5, -0.2, 0.0], [-1.0, 0.3, 0.1]]), [1, 0]),
}


def picture(display):
    """The figure as it would be saved."""
    file = io.BytesIO()
    display.figure_.savefig(file, format="png", dpi=40)
    return file.getvalue()


@every_display
def test_from_estimator_is_from_predictions(model, judged, Display, options):
    X, y, votes, weights = judged
    D = np.linspace(0, 1, len(y))
    asked = Display.from_estimator(model, X, y, sample_weight=D, **options)
    given = Display.from_predictions(
        votes, y, weights, pos_label="fraud", sample_weight=D, **options
    )
    assert isinstance(asked, Display)
    for name, value in vars(given).items():
        if not name.endswith("_"):
            np.testing.assert_array_equal(vars(asked)[name], value)
    assert picture(asked) == picture(given)


@pytest.mark.slow
@every_display
@pytest.mark.parametrize("edge", EDGES)
def test_the_edges_are_drawn(Display, options, edge):
    votes, y = EDGES[edge]
    weights = np.arange(votes.shape[1]) + (votes.shape[1] == 1)
    for Q in (None, weights):
        display = Display.from_predictions(votes, y, Q, **options)
        assert picture(display)
        assert display.ax_.get_title(loc="left")
        plt.close(display.figure_)


@every_display
def test_it_draws_where_it_is_told(judged, Display, options):
    _, y, votes, weights = judged
    figure = Figure(layout="constrained")
    left, right = figure.subplots(1, 2)
    display = Display.from_predictions(
        votes, y, weights, pos_label="fraud", ax=right, **options
    )
    assert display.ax_ is right
    assert display.figure_ is figure
    assert not left.has_data()
    free = Figure()
    display.plot(free.add_axes((0.2, 0.2, 0.6, 0.6)))
    assert display.figure_ is free
    assert picture(display)
    assert plt.get_fignums() == []  # pyplot has no part in it


@pytest.mark.slow
@every_display
def test_models_inside_pipelines_and_searches(model, judged, table, Display, options):
    X, y, *_ = judged
    names = np.array(["usual", "fraud"])[table[1]]
    wrapped = make_pipeline(FunctionTransformer(), model)
    search = GridSearchCV(wrapped, {"damviclassifier__n_estimators": [12]}, cv=2)
    search.fit(table[0], names)
    direct = picture(Display.from_estimator(model, X, y, **options))
    for outer in (wrapped, search, make_pipeline(model)):
        assert picture(Display.from_estimator(outer, X, y, **options)) == direct
        plt.close("all")


def test_labels_the_model_does_not_know(model, judged):
    with pytest.raises(
        ValueError, match=r"unknown to the model: \['theft'\].*'fraud', 'usual'"
    ):
        MarginsDisplay.from_estimator(model, judged[0], ["theft"] * len(judged[0]))


def test_a_model_without_votes(table):
    with pytest.raises(TypeError, match="DecisionTreeClassifier has no votes; pass"):
        MarginsDisplay.from_estimator(DecisionTreeClassifier().fit(*table), *table)


def test_bad_options_open_no_figure(judged):
    _, y, votes, _ = judged
    with pytest.raises(ValueError, match="kind='violin'"):
        MarginsDisplay.from_predictions(votes, y == "fraud", kind="violin")
    with pytest.raises(ValueError, match="order='size'"):
        DisagreementDisplay.from_predictions(votes, order="size")
    with pytest.raises(ValueError, match="choose the positive one"):
        KappaErrorDisplay.from_predictions(votes, y)
    assert plt.get_fignums() == []


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"WeightsDisplay requires.*damvi\[report\]"):
        WeightsDisplay(np.ones(1)).plot()


@pytest.mark.parametrize("voting", ["soft", "hard"])
@pytest.mark.parametrize("Display", [MarginsDisplay, WeightsDisplay])
def test_pools_have_pictures_too(judged, Display, voting):
    X, y, *_ = judged
    pool = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=3))]
    model = DAMVIVotingClassifier(pool, voting=voting, random_state=0).fit(X, y)
    shown = Display.from_estimator(model, X, y)
    votes = model.cast_votes(X)
    same = Display.from_predictions(votes, y, model.weights_, pos_label="fraud")
    assert picture(shown) == picture(same)
