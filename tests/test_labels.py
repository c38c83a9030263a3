"""Labels to class numbers and back: the positive class, ties, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from damvi.labels import ClassTotals, Labels, missing_labels

TARGETS = np.array([0, 0, 1, 0], dtype=np.int8)


@pytest.mark.parametrize(
    "names",
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
def test_the_rarer_class_is_positive_whatever_its_name(names):
    common, rare = names
    y = np.array([common, common, rare, common], dtype=np.asarray(names).dtype)
    labels, targets = Labels.read(y)
    assert labels.pos_label == rare
    assert sorted(names) == labels.classes.tolist()
    assert labels.by_target.tolist() == [common, rare]
    np.testing.assert_array_equal(targets, TARGETS)
    np.testing.assert_array_equal(labels.targets_of(y), TARGETS)
    assert targets.dtype == np.int8


def test_of_two_equal_classes_the_last_in_order_is_positive():
    labels, targets = Labels.read(np.array(["b", "a", "a", "b"]))
    assert labels.pos_label == "b"
    np.testing.assert_array_equal(targets, [1, 0, 0, 1])


def test_pos_label_decides_when_given():
    labels, targets = Labels.read(np.array([0, 0, 1, 0]), 0)
    assert labels.pos_label == 0
    np.testing.assert_array_equal(targets, 1 - TARGETS)


def test_of_three_classes_none_is_positive_and_targets_are_places():
    labels, targets = Labels.read(np.array(["b", "c", "a", "b"]))
    assert labels.pos_label is None
    assert labels.classes.tolist() == labels.by_target.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(targets, [1, 2, 0, 1])
    assert labels.order.tolist() == [1, 0, 2]


@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("n_ones", [1, 2, 3])
def test_a_tie_goes_to_the_majority_class_or_of_equal_ones_to_the_negative(
    positive, n_ones
):
    y = (np.arange(4) < n_ones).astype(int)
    labels, _ = Labels.read(y, positive)
    winner = int(n_ones > 2) if n_ones != 2 else 1 - positive
    assert labels.predict(labels.scores(np.zeros(1), 0.0)).tolist() == [winner]
    assert labels.predict(labels.scores(np.array([0.3]), 0.3)).tolist() == [winner]
    assert labels.probabilities(np.zeros(1)).argmax() == winner
    # Any vote at all decides.
    vote = np.array([1e-9, -1e-9])
    assert labels.predict(labels.scores(vote, 0.0)).tolist() == [positive, 1 - positive]


@pytest.mark.parametrize(("y", "pos_label"), [([0, 1], 2), ([0, 1], "a"), (["a", "b"], 1)])
def test_a_pos_label_that_is_no_class_is_named_with_the_classes(y, pos_label):
    with pytest.raises(
        ValueError, match=f"pos_label={pos_label!r} is not one of the classes in y"
    ):
        Labels.read(np.array(y), pos_label)


def test_of_three_classes_none_can_be_named():
    with pytest.raises(ValueError, match=r"Only binary.*pos_label=1, but y has 3 classes"):
        Labels.read(np.array([0, 1, 2]), 1)


def test_one_class_is_named_with_its_count_and_the_cure():
    with pytest.raises(ValueError, match=r"only one class \('a', 3 rows\).*stratify=y"):
        Labels.read(np.array(["a"] * 3))


def test_a_continuous_target_is_refused():
    with pytest.raises(ValueError, match="continuous"):
        Labels.read(np.array([0.5, 1.5, 2.25]))


def test_labels_that_are_not_known_are_named_with_their_row():
    labels, _ = Labels.read(np.array(["no", "yes", "no"]))
    with pytest.raises(
        ValueError, match=r"y is 'maybe' at row 1.*1 of 2 rows have unknown labels"
    ):
        labels.targets_of(np.array(["no", "maybe"]))


def test_how_much_a_row_of_each_class_counts():
    labels, targets = Labels.read(np.repeat([0, 1], [80, 20]))
    totals = labels.totals(targets, None)
    for balance, positive in ((0, 1.0), (0.5, 2.0), (1, 4.0)):
        assert labels.class_weight(totals.weight, balance).tolist() == [1.0, positive]
    assert labels.reweighted(totals).tolist() == [False, True]
    labels, targets = Labels.read(np.repeat([0, 1, 2], [80, 40, 20]))
    totals = labels.totals(targets, None)
    assert labels.class_weight(totals.weight, 1).tolist() == [1.0, 2.0, 4.0]
    assert labels.reweighted(totals).tolist() == [False, True, True]


@given(st.integers(0, 10**6), st.integers(1, 50))
def test_totals_of_parts_add_up_in_any_order(seed, n):
    rng = np.random.default_rng(seed)
    targets, weights = rng.integers(0, 4, n), rng.uniform(size=n) * rng.integers(0, 2, n)
    whole = ClassTotals.of(targets, 4, weights)
    order, cut = rng.permutation(n), int(rng.integers(0, n + 1))
    one, other = (
        ClassTotals.of(targets[rows], 4, weights[rows])
        for rows in (order[:cut], order[cut:])
    )
    for name in ("rows", "counted", "units"):
        np.testing.assert_array_equal(getattr(one + other, name), getattr(whole, name))
    assert whole.n_rows == n
    np.testing.assert_allclose(
        whole.weight, np.bincount(targets, weights, minlength=4), atol=1e-7
    )


def test_two_classes_are_a_case_of_what_is_looked_for():
    """All that depends on how many classes there are, once with one column, once with C."""
    two, _ = Labels.read(np.repeat(["a", "b"], [10, 30]))  # the positive one comes first
    assert (two.reported.tolist(), two.usual, two.is_binary) == ([1], 0, True)
    assert two.rare(np.array([1, 9])).tolist() == [False, True]  # however many there are
    vote = np.array([-0.5, 0.0, 0.5])
    np.testing.assert_allclose(two.chances(vote), two.probabilities(vote)[:, 0])
    np.testing.assert_array_equal(two.as_vote(vote[:, None]), vote)
    assert two.told(np.float64(0.25)) == {"threshold": 0.25}
    hard = np.array([[1, -1]], np.int8)
    assert two.votes_for(hard, 1).tolist() == [[1, -1]]
    assert two.decided_by_each(np.array([[0.1, 0.3]]), 0.2).tolist() == [[0, 1]]
    # Positives that are the majority win ties, so they are flagged at the threshold too.
    most, _ = Labels.read(np.repeat(["a", "b"], [10, 30]), "b")
    assert two.flags_above(0.2) == 0.2 > most.flags_above(0.2)
    assert most.decided_by_each(np.array([[0.2, 0.1]]), 0.2).tolist() == [[1, 0]]

    three, _ = Labels.read(np.repeat([4, 5, 6], [10, 30, 20]))
    assert (three.reported.tolist(), three.usual, three.is_binary) == ([0, 1, 2], 1, False)
    assert three.rare(np.array([1, 5, 3])).tolist() == [True, False, False]
    votes = np.array([[0.5, 0.5, 0.0]])
    assert three.chances(votes).argmax() == 1
    np.testing.assert_array_equal(three.as_vote(votes), votes)
    assert three.told(np.ones(3)) == {"factors": [1.0, 1.0, 1.0]}
    assert three.votes_for(np.array([[2, 0]], np.uint8), 2).tolist() == [[True, False]]
    assert three.votes_for(votes[:, None], 1).tolist() == [[0.5]]
    assert three.decided_by_each(votes[:, None], np.array([2, 1, 1])).tolist() == [[0]]
    assert three.flags_above(np.ones(3)) == 1.0  # no vote alone decides
    for labels in (two, most, three):
        again = Labels.restored(labels.classes, labels.pos_label, labels.order)
        assert type(again) is type(labels)
        assert again.by_target.tolist() == labels.by_target.tolist()


def test_a_date_that_is_missing_is_no_class():
    y = np.array(["2020-01-01", "NaT", "2021-01-01"], dtype="datetime64[D]")
    assert missing_labels(y).tolist() == [False, True, False]
