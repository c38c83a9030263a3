"""Labels and weights as the user gives them, in the terms of the paper."""

import numpy as np
import pandas as pd
import pytest
from damvi.reading import encode_labels, read_weights

SIGNS = np.array([-1, -1, 1, -1], dtype=np.int8)


@pytest.mark.parametrize(
    "labels",
    [
        ([0, 1]),
        ([7, -3]),
        ([0.0, 1.0]),
        (["common", "rare"]),
        (["z", "a"]),
        ([False, True]),
        ([True, False]),
        (np.array(["no", "yes"], dtype=object)),
    ],
)
def test_the_rarer_class_is_positive_whatever_its_name(labels):
    common, rare = labels
    y = np.array([common, common, rare, common], dtype=np.asarray(labels).dtype)
    classes, positive, signs = encode_labels(y, None)
    assert positive == rare
    assert sorted(labels) == classes.tolist()
    np.testing.assert_array_equal(signs, SIGNS)
    assert signs.dtype == np.int8


def test_of_two_equal_classes_the_last_in_order_is_positive():
    _, positive, signs = encode_labels(np.array(["b", "a", "a", "b"]), None)
    assert positive == "b"
    np.testing.assert_array_equal(signs, [1, -1, -1, 1])


def test_pos_label_decides_when_given():
    _, positive, signs = encode_labels(np.array([0, 0, 1, 0]), 0)
    assert positive == 0
    np.testing.assert_array_equal(signs, -SIGNS)


@pytest.mark.parametrize(("y", "pos_label"), [([0, 1], 2), ([0, 1], "a"), (["a", "b"], 1)])
def test_a_pos_label_that_is_no_class_is_named_with_the_classes(y, pos_label):
    with pytest.raises(ValueError, match=f"pos_label={pos_label!r} is not a class of y"):
        encode_labels(np.array(y), pos_label)


def test_one_class_is_named_with_its_count_and_the_cure():
    with pytest.raises(ValueError, match=r"one class only \('a', 3 rows\).*stratify=y"):
        encode_labels(np.array(["a"] * 3), None)


@pytest.mark.parametrize(
    ("y", "shown"), [([0, 1, 2], r"3 classes \(0, 1, 2\)"), (range(9), r"4, \.\.\.\)")]
)
def test_three_classes_have_no_signs(y, shown):
    with pytest.raises(ValueError, match=f"Only binary.*{shown}; name one class.*y == "):
        encode_labels(np.array(y), None)


def test_a_continuous_target_is_refused():
    with pytest.raises(ValueError, match="continuous"):
        encode_labels(np.array([0.5, 1.5, 2.25]), None)


@pytest.mark.parametrize("factor", [1e-300, 1.0, 1e300])
def test_weights_are_scaled_to_a_maximum_of_1(factor):
    weights = read_weights(factor * np.array([1.0, 2.0, 4.0, 0.0]), SIGNS)
    np.testing.assert_allclose(weights, [0.25, 0.5, 1, 0], rtol=1e-15)


def test_no_weights_stay_none_and_any_sequence_will_do():
    assert read_weights(None, SIGNS) is None
    for weights in ([1, 1, 2, 2], pd.Series([1, 1, 2, 2], index=list("abcd"))):
        np.testing.assert_array_equal(read_weights(weights, SIGNS), [0.5, 0.5, 1, 1])


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
        read_weights(weights, SIGNS)
