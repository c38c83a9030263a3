"""sample_weight as the user gives it; X and X_unlabeled are tested where they are used."""

import numpy as np
import pandas as pd
import pytest

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
        ([1.0, 1.0], r"sample_weight has shape \(2,\), X has 4 rows; give one weight"),
        (np.ones((4, 1)), r"shape \(4, 1\)"),
        (3.0, r"shape \(\)"),
        ([1.0, np.nan, 1.0, 1.0], "sample_weight is nan at row 1; .*finite"),
        ([1.0, 1.0, np.inf, 1.0], "sample_weight is inf at row 2; .*finite"),
        ([1.0, 1.0, -2.0, 1.0], r"negative at row 2 \(-2\); .*0 or more"),
        ([0.0] * 4, "zero on every row; give some rows a positive weight"),
        ([1.0, 1.0, 0.0, 1.0], "leaves one class only.*both classes"),
        ([0.0, 0.0, 1.0, 0.0], "leaves one class only.*both classes"),
    ],
)
def test_bad_weights_are_named_with_the_cure(weights, message):
    with pytest.raises(ValueError, match=message):
        read(weights)


def test_of_many_classes_the_one_without_weight_is_named():
    with pytest.raises(ValueError, match=r"leaves nothing of class 'b'.*leave these rows"):
        read_weights([1.0, 0.0, 1.0], np.arange(3), np.array(["a", "b", "c"]))
    # A tree can do without it.
    weights = read_weights([1.0, 0.0, 1.0], np.arange(3))
    np.testing.assert_array_equal(weights, [1, 0, 1])
