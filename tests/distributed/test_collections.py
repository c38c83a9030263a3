"""What is asked of Dask collections: right answers and shapes, and errors with a cure."""

import subprocess
import sys

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier, DAMVIVotingClassifier
from damvi.distributed import decision_function, fit, predict, predict_proba, vote

from .conftest import frame_of


@pytest.fixture(scope="module", params=[2, 3])
def known(request):
    """A model that never saw Dask, and rows to ask it about."""
    frame = frame_of(400, n_classes=request.param)
    frame.index = pd.Index(np.arange(400) * 2 + 7, name="id")
    X = frame.drop(columns="label")
    return DAMVIClassifier(n_estimators=5, random_state=0).fit(X, frame["label"]), X


def test_frames_are_answered_lazily_with_their_index(known):
    model, X = known
    table = dd.from_pandas(X, npartitions=4)
    table = table[(table["a"] > -1) | (table.index > 300)]
    X = X[(X["a"] > -1) | (X.index > 300)]
    many = len(model.classes_) > 2
    for ask in (predict, predict_proba, decision_function, vote):
        lazy = ask(model, table)
        assert lazy.npartitions == 4
        found, right = lazy.compute(scheduler="sync"), getattr(model, ask.__name__)(X)
        assert np.array_equal(found.to_numpy(), right)
        assert found.index.equals(X.index)
        assert found.index.name == lazy._meta.index.name == "id"
        wide = ask is predict_proba or (many and ask is not predict)
        assert isinstance(lazy, dd.DataFrame if wide else dd.Series)
        if wide:
            assert list(lazy.columns) == list(found.columns) == list(model.classes_)
            assert (lazy._meta.dtypes == found.dtypes).all()
        else:
            assert lazy._meta.dtype == found.dtype


def test_an_empty_partition(known):
    model, X = known
    table = dd.from_pandas(X, npartitions=2)
    nothing = table[table["a"] > 100]
    for ask in (predict, predict_proba):
        found = ask(model, nothing).compute(scheduler="sync")
        assert len(found) == 0
        assert found.index.name == "id"


@pytest.mark.parametrize("n_classes", [2, 3])
def test_arrays_are_answered_lazily(n_classes):
    frame = frame_of(300, n_classes=n_classes)
    X, y = frame[["a", "b", "c"]].to_numpy(), frame["label"].to_numpy()
    model = DAMVIClassifier(n_estimators=5, random_state=0, n_jobs=2).fit(X, y)
    table = da.from_array(X, chunks=(100, 2))
    for ask in (predict, predict_proba, decision_function, vote):
        lazy, right = ask(model, table), getattr(model, ask.__name__)(X)
        assert lazy.shape == right.shape
        assert lazy.dtype == right.dtype
        found = lazy.compute(scheduler="sync")
        assert found.dtype == right.dtype
        assert np.array_equal(found, right)
    assert model.n_jobs == 2


def test_a_pool_answers_too():
    frame = frame_of(300)
    X, y = frame[["a", "c"]], frame["label"]
    voters = [(f"depth {d}", DecisionTreeClassifier(max_depth=d)) for d in (1, 2, 3)]
    model = DAMVIVotingClassifier(voters, random_state=0).fit(X, y)
    for ask in (predict, predict_proba, decision_function, vote):
        found = ask(model, dd.from_pandas(X, npartitions=3)).compute(scheduler="sync")
        assert np.array_equal(found.to_numpy(), getattr(model, ask.__name__)(X))
        assert "DAMVIVotingClassifier" in ask.__doc__


def bad(change=None, y="label", weight=None):
    frame = frame_of(100)
    if change is not None:
        frame = change(frame)
    return dd.from_pandas(frame, npartitions=2), y, weight


def split(n_parts=2, first=0):
    """Rows, and the labels of those from the first on, in so many partitions."""
    frame = frame_of(100)
    labels = dd.from_pandas(frame["label"][first:], npartitions=n_parts)
    return dd.from_pandas(frame.drop(columns="label"), npartitions=2), labels, None


def with_text(frame):
    return frame.assign(shop=frame["shop"].astype(str))


def with_infinity(frame):
    frame = frame.drop(columns="shop")
    frame.loc[70, "c"] = np.inf
    return frame


def with_gaps(frame):
    frame.loc[70:72, "label"] = None
    return frame


def with_negative_weight(frame):
    frame.loc[3, "weight"] = -1
    return frame


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (bad(y="nope"), ValueError, "X has no column 'nope'; its columns are 'a'"),
        (
            (split()[0], np.zeros(100), None),
            TypeError,
            "y is a ndarray, but must be a Dask Series",
        ),
        ((split()[0], None, None), TypeError, "y is a NoneType"),
        (
            bad(with_text),
            ValueError,
            r"column 'shop' has dtype str.*X.categorize\(columns=",
        ),
        (bad(with_infinity), ValueError, "partition 1: column 'c' contains infinity"),
        (bad(with_gaps), ValueError, "partition 1: 3 of 50 rows have no label"),
        (
            bad(with_negative_weight, weight="weight"),
            ValueError,
            "partition 0: some sample weights are missing, infinite or negative",
        ),
        (bad(weight="shop"), ValueError, "partition [01]: sample_weight is not numeric"),
        (split(5), ValueError, "y has 5 partitions, but X has 2"),
        (split(first=10), ValueError, "partition [01]: X has 50 rows, but y has 45"),
        ((frame_of(100), "label", None), TypeError, "X must be a Dask DataFrame or Array"),
        ((da.zeros((9, 2)), da.zeros(8), None), ValueError, "y has 8 rows, but X has 9"),
        ((da.zeros(9), da.zeros(9), None), ValueError, "X has 1 dimensions"),
        ((da.zeros((9, 2)), da.zeros((9, 2)), None), ValueError, "y has 2 dimensions"),
        ((da.zeros((9, 2)), da.zeros(9), None), ValueError, "y has only one class"),
    ],
)
def test_bad_input_is_told(here, given, error, message):
    with pytest.raises(error, match=message):
        fit(DAMVIClassifier(n_estimators=3), *given, client=here)


def test_unknown_categories(here):
    table = dd.from_pandas(with_text(frame_of(100)), npartitions=2)
    table["shop"] = table["shop"].astype("category")
    with pytest.raises(ValueError, match=r"'shop' are unknown; .*categorize"):
        fit(DAMVIClassifier(), table, "label", client=here)


def test_texts_categorized_are_as_pandas_has_them(here):
    frame = with_text(frame_of())
    X = frame.drop(columns="label").astype({"shop": "category"})
    settings = {"n_estimators": 5, "bootstrap": "poisson", "random_state": 0}
    local = DAMVIClassifier(**settings).fit(X, frame["label"])
    table = dd.from_pandas(frame, npartitions=3).categorize(columns=["shop"])
    model = fit(DAMVIClassifier(**settings), table, "label", client=here)
    assert np.array_equal(model.weights_, local.weights_)
    assert np.array_equal(model.vote(X), local.vote(X))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": DecisionTreeClassifier()}, "needs all rows in memory"),
        ({"bootstrap": False}, "bootstrap=True or 'poisson'"),
        ({"warm_start": True}, "warm_start needs all rows in memory"),
        ({"n_estimators": 0}, "n_estimators"),
    ],
)
def test_settings_that_need_all_rows(here, settings, message):
    with pytest.raises(ValueError, match=message):
        fit(DAMVIClassifier(**settings), *bad()[:2], client=here)


def test_other_estimators_are_refused(here):
    with pytest.raises(TypeError, match=r"must be a DAMVIClassifier or .* Pipeline"):
        fit(make_pipeline(DAMVIClassifier()), *bad()[:2], client=here)


def test_no_client_and_no_dask_collection():
    with pytest.raises(ValueError, match="no Dask client; create one"):
        fit(DAMVIClassifier(), *bad()[:2])
    frame = frame_of(100)[["a", "c", "label"]]
    model = DAMVIClassifier(n_estimators=3).fit(frame[["a", "c"]], frame["label"])
    with pytest.raises(TypeError, match=r"use model\.predict\(X\)"):
        predict(model, frame[["a", "c"]])


@pytest.mark.slow
def test_without_dask_it_says_what_to_install():
    code = (
        "import sys; sys.modules['distributed'] = None\n"
        "try:\n    import damvi.distributed\n"
        "except ImportError as error:\n    print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'damvi[dask]'" in ran.stdout
    assert ran.stdout.count("\n") == 1
