import numpy as np
import pytest

from damvi.decision import (
    Cost,
    FBeta,
    Fixed,
    Floor,
    MacroF1,
    Untuned,
    parse_objective,
    tune_threshold,
)
from damvi.labels import allows_many_classes


@pytest.mark.parametrize(
    ("spec", "kind", "fields"),
    [
        ("vote", Untuned, {"threshold": 0.0}),
        (0.25, Fixed, {"threshold": 0.25}),
        (np.float32(0.5), Fixed, {"threshold": 0.5}),
        (-3, Fixed, {"threshold": -3.0}),
        ("f1", FBeta, {"beta": 1.0}),
        ("fbeta", FBeta, {"beta": 2.0}),
        (("fbeta", 0.5), FBeta, {"beta": 0.5}),
        ({"fbeta": 3}, FBeta, {"beta": 3.0}),
        ({"recall": 0.9}, Floor, {"rate": "recall", "floor": 0.9}),
        ({"precision": 1}, Floor, {"rate": "precision", "floor": 1.0}),
        ({"cost": (1, 50)}, Cost, {"false_alarm": 1.0, "miss": 50.0}),
        ({"cost": [[1, 3], [20, 2]]}, Cost, {"false_alarm": 2.0, "miss": 18.0}),
        ({"cost": np.array([[0, 1], [5, 0]])}, Cost, {"false_alarm": 1.0, "miss": 5.0}),
    ],
)
def test_what_a_threshold_stands_for(spec, kind, fields):
    parsed = parse_objective(spec)
    assert type(parsed) is kind
    assert {name: getattr(parsed, name) for name in fields} == fields
    assert parse_objective(parsed) is parsed


@pytest.mark.parametrize(
    ("spec", "culprit"),
    [
        ("f2", r"threshold='f2' is unknown; use \"vote\""),
        (None, "threshold=None"),
        (True, "threshold=True"),
        (np.nan, "must be finite"),
        (np.inf, "must be finite"),
        ({}, "is unknown"),
        ({"recall": 0.9, "precision": 0.5}, "is unknown"),
        ({"accuracy": 0.9}, "accuracy"),
        (
            {"recall": 90},
            "minimum recall is 90, but must be a number above 0 and at most 1",
        ),
        ({"precision": 0}, "minimum precision is 0"),
        ({"precision": "high"}, "minimum precision is 'high'"),
        ({"fbeta": -1}, "beta of fbeta is -1"),
        ({"fbeta": np.inf}, "beta of fbeta is inf"),
        ({"cost": 5}, r"the cost is 5, but must be \(false_alarm, miss\)"),
        ({"cost": (1, -5)}, "cost of a miss must be"),
        ({"cost": (0, 5)}, "cost of a false alarm is 0"),
        ({"cost": (np.nan, 5)}, "cost of a false alarm must be"),
        ({"cost": [[5, 1], [9, 0]]}, "rewards errors"),
    ],
)
def test_errors_name_the_culprit_and_the_cure(spec, culprit):
    with pytest.raises(ValueError, match=culprit):
        parse_objective(spec)


def test_what_a_threshold_stands_for_with_many_classes():
    assert parse_objective("vote", 3).threshold.tolist() == [1, 1, 1]
    assert parse_objective([1, 2, 0.5], 3).threshold.tolist() == [1, 2, 0.5]
    assert type(parse_objective("macro_f1", 3)) is MacroF1
    for known in ("macro_f1", [1, 2, 3]):
        parsed = parse_objective(known, 3)
        assert allows_many_classes(known)
        assert parse_objective(parsed, 3).name == "macro F1"
        with pytest.raises(ValueError, match="is unknown"):
            parse_objective(parsed)


@pytest.mark.parametrize("spec", ["f1", {"recall": 0.9}, 0.1, FBeta(2.0), Fixed(0.1)])
def test_what_two_classes_alone_can_have(spec):
    assert not allows_many_classes(spec)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        parse_objective(spec, 3)


@pytest.mark.parametrize("factors", [[1, 2], [1, 2, 0], [1, 2, np.inf]])
def test_factors_must_fit_the_classes(factors):
    with pytest.raises(ValueError, match="must be 3 positive, finite factors"):
        parse_objective(factors, 3)


def test_a_cost_for_each_row_must_fit_the_rows():
    with pytest.raises(ValueError, match="cost of a miss has 3 entries for 2 rows"):
        tune_threshold([0, 1], [0, 1], {"cost": (1, [1, 2, 3])})
