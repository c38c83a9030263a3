"""sample_weight and dates as users give them; X is tested where it is used."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier, DAMVIVotingClassifier, FastTreeClassifier
from damvi.validation import read_weights

TARGETS = np.array([0, 0, 1, 0])
CLASSES = np.array(["common", "rare"])


def read(weights):
    return read_weights(weights, TARGETS, CLASSES)


@pytest.mark.parametrize("factor", [1e-300, 1.0, 1e300])
def test_weights_are_scaled_to_a_maximum_of_1(factor):
    weights = read(factor * np.array([1.0, 2.0, 4.0, 0.0]))
    np.testing.assert_allclose(weights, [0.25, 0.5, 1, 0], rtol=1e-15)


def test_no_weights_stay_none_and_any_sequence_will_do():
    assert read(None) is None
    for weights in ([1, 1, 2, 2], pd.Series([1, 1, 2, 2], index=list("abcd"))):
        np.testing.assert_array_equal(read(weights), [0.5, 0.5, 1, 1])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 1.0], r"sample_weight has shape \(2,\), but X has 4 rows; give one weight"),
        (np.ones((4, 1)), r"shape \(4, 1\)"),
        (3.0, r"shape \(\)"),
        ([1.0, np.nan, 1.0, 1.0], "sample_weight is nan at row 1; .*finite"),
        ([1.0, 1.0, np.inf, 1.0], "sample_weight is inf at row 2; .*finite"),
        ([1.0, 1.0, -2.0, 1.0], r"negative in row 2 \(-2\); .*not be negative"),
        ([0.0] * 4, "is zero in every row; give some rows a positive weight"),
        ([1.0, 1.0, 0.0, 1.0], "leaves only one class.*both classes"),
        ([0.0, 0.0, 1.0, 0.0], "leaves only one class.*both classes"),
    ],
)
def test_bad_weights_are_named_with_the_cure(weights, message):
    with pytest.raises(ValueError, match=message):
        read(weights)


def test_of_many_classes_the_one_without_weight_is_named():
    with pytest.raises(ValueError, match=r"leaves no row of class 'b'.*remove these rows"):
        read_weights([1.0, 0.0, 1.0], np.arange(3), np.array(["a", "b", "c"]))
    # A tree can do without it.
    weights = read_weights([1.0, 0.0, 1.0], np.arange(3))
    np.testing.assert_array_equal(weights, [1, 0, 1])


N = 40
DATES = pd.Series(pd.date_range("2024-01-01", periods=N, freq="7h"))
DATES[3] = pd.NaT  # -9e18, if it were a number
NUMBERS = np.random.default_rng(0).normal(size=N)
KINDS = {
    "dates": DATES,
    "durations": DATES - DATES[0],
    "with a zone": DATES.dt.tz_localize("UTC"),
    "of arrow": DATES.astype("timestamp[ns][pyarrow]"),
}
FRAMES = {name: pd.DataFrame({"a": NUMBERS, "d": some}) for name, some in KINDS.items()}
FRAMES |= {f"only {name}": pd.DataFrame({"d": some}) for name, some in KINDS.items()}
FRAMES["array"] = DATES.to_numpy()[:, None]
FRAMES["list"] = [[value] for value in (DATES - DATES[0]).to_numpy()]
FRAMES["polars"] = pl.DataFrame({"a": NUMBERS, "d": DATES})
FRAMES["beside a category"] = FRAMES["dates"].assign(
    c=pd.Categorical(list("ab") * (N // 2))
)
MODELS = {
    "trees": DAMVIClassifier(n_estimators=3),
    "bagged": DAMVIClassifier(DecisionTreeClassifier(), n_estimators=3),
    "pool": DAMVIVotingClassifier(
        [("one", DecisionTreeClassifier(max_depth=1)), ("two", DecisionTreeClassifier())]
    ),
    "tree": FastTreeClassifier(),
}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("model", MODELS)
def test_dates_are_no_numbers(model, frame):
    """They were whole numbers of nanoseconds, and a missing one -9e18."""
    X, y = FRAMES[frame], NUMBERS > 0
    where = "column 'd' of X" if hasattr(X, "columns") else "X"
    message = f"{where} contains dates or durations; convert them"
    with pytest.raises(ValueError, match=message):
        clone(MODELS[model]).fit(X, y)


@pytest.mark.parametrize("model", ["trees", "bagged", "pool"])
def test_dates_where_numbers_were_at_fit(model):
    fitted = clone(MODELS[model]).fit(pd.DataFrame({"d": NUMBERS}), NUMBERS > 0)
    with pytest.raises(ValueError, match="column 'd' of X contains dates or durations"):
        fitted.predict(FRAMES["only dates"])


def test_a_pipeline_may_make_numbers_of_dates():
    def to_numbers(X):
        return X.assign(d=(X["d"] - pd.Timestamp(0)) / np.timedelta64(1, "D"))

    voter = make_pipeline(FunctionTransformer(to_numbers), FastTreeClassifier())
    X, y = FRAMES["dates"], NUMBERS > 0
    for model in (
        DAMVIClassifier(voter, n_estimators=3, random_state=0),
        DAMVIVotingClassifier([("one", voter), ("two", voter)]),
    ):
        assert set(model.fit(X, y).predict(X)) == {False, True}


def test_any_missing_value_of_text_is_the_same_one():
    from damvi.voters.portfolio import strong_pool

    rng = np.random.default_rng(0)
    y = (rng.random(300) < 0.2).astype(int)
    kinds = np.where((y == 1) & (rng.random(300) < 0.7), "a", rng.choice(list("bcd"), 300))
    text = pd.Series(kinds, dtype=object).mask(rng.random(300) < 0.3, None)
    pool = [("linear", dict(strong_pool(0))["spline_linear"])]
    chances = []
    for dtype in ("object", "string", "category"):
        X = pd.DataFrame({0: rng.normal(size=300) * 0, 1: text.astype(dtype)})
        model = DAMVIVotingClassifier(pool, random_state=0).fit(X, y)
        chances += [model.predict_proba(X), model.predict_proba(X.astype({1: "string"}))]
    for other in chances[1:]:
        np.testing.assert_array_equal(other, chances[0])
