"""Rows of the fit are told from rows that only have the same values."""

import warnings

import numpy as np
import pytest

from damvi.certificate.certificate import is_leak, refuse_training_rows, shared_rows
from damvi.datasets import load
from damvi.hashing import row_hashes

SPLITS = 20


def verdict(X, y, X_train, y_train):
    """What is said of the rows X: nothing, a warning, or a refusal."""
    trained = np.sort(row_hashes(X_train, 2 * y_train - 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            refuse_training_rows(row_hashes(X, 2 * y - 1), trained)
        except ValueError:
            return "refused"
    return "warned" if caught else "taken"


def split(X, y, seed, share=0.3):
    order = np.random.RandomState(seed).permutation(len(y))
    cut = round(share * len(y))
    new, old = order[:cut], order[cut:]
    return X[new], y[new], X[old], y[old]


@pytest.fixture(scope="module")
def mammography():
    data = load("mammography")
    return np.asarray(data.data), np.asarray(data.target).astype(int)


@pytest.fixture(scope="module")
def numbers():
    """Continuous features: no value twice."""
    rng = np.random.RandomState(0)
    return rng.normal(size=(3000, 4)), (rng.rand(3000) < 0.05).astype(int)


def test_mammography_a_fresh_split_is_only_warned_of(mammography):
    assert {verdict(*split(*mammography, seed)) for seed in range(SPLITS)} == {"warned"}


@pytest.mark.parametrize("rows", [slice(None), slice(100), slice(4000, 4010)])
def test_mammography_training_rows_are_refused(mammography, rows):
    for seed in range(SPLITS):
        _, _, X, y = split(*mammography, seed)
        assert verdict(X[rows], y[rows], X, y) == "refused"


def test_mammography_a_block_of_training_rows_among_fresh_ones_is_refused(mammography):
    for seed in range(SPLITS):
        X_new, y_new, X, y = split(*mammography, seed)
        mixed = np.concatenate([X_new, X[:100]]), np.concatenate([y_new, y[:100]])
        assert verdict(*mixed, X, y) == "refused"


def test_fresh_numbers_are_taken_without_a_word(numbers):
    assert verdict(*split(*numbers, 0)) == "taken"


@pytest.mark.parametrize("leaked", [2, 10, 50, 900])
def test_training_rows_alone_are_refused(numbers, leaked):
    _, _, X, y = split(*numbers, 0)
    assert verdict(X[:leaked], y[:leaked], X, y) == "refused"


def test_a_row_or_two_of_many_may_be_chance(numbers):
    X_new, y_new, X, y = split(*numbers, 0)
    for leaked, said in ((2, "warned"), (40, "refused")):
        mixed = np.concatenate([X_new, X[:leaked]]), np.concatenate([y_new, y[:leaked]])
        assert verdict(*mixed, X, y) == said


def test_positives_copied_into_fresh_rows_are_refused(numbers):
    X_new, y_new, X, y = split(*numbers, 0)
    copied = np.flatnonzero(y == 1)[:25]
    keep = y_new == 0
    mixed = np.concatenate([X_new[keep], X[copied]])
    labels = np.concatenate([y_new[keep], y[copied]])
    assert verdict(mixed, labels, X, y) == "refused"


def test_order_and_repetition_do_not_hide_training_rows(numbers):
    _, _, X, y = split(*numbers, 0)
    rows = np.random.RandomState(1).randint(len(y), size=500)
    assert verdict(X[rows], y[rows], X, y) == "refused"


def test_training_rows_given_twice_to_fit_are_refused(numbers):
    _, _, X, y = split(*numbers, 0)
    twice = np.concatenate([X, X]), np.concatenate([y, y])
    assert verdict(X, y, *twice) == "refused"
    assert verdict(X[:300], y[:300], *twice) == "refused"


def test_oversampled_positives_do_not_hide_training_rows(numbers):
    X_new, y_new, X, y = split(*numbers, 0)
    rows = np.concatenate([np.arange(len(y)), np.repeat(np.flatnonzero(y == 1), 15)])
    assert verdict(X, y, X[rows], y[rows]) == "refused"
    assert verdict(X_new, y_new, X[rows], y[rows]) == "taken"


def test_a_value_that_becomes_more_common_is_no_leak(numbers):
    """Default rows: 10 % of the rows in training, half of them later."""
    X, y = numbers[0].copy(), numbers[1]
    X[: len(y) // 10] = 0
    X_new, y_new, X, y = split(X, y, 0)
    X_new = X_new.copy()
    X_new[::2] = 0
    assert verdict(X_new, y_new, X, y) == "warned"


def test_small_integers_are_natural_duplicates():
    """Few distinct rows, some rare, some common: fresh ones are never refused."""
    said = []
    for seed in range(100):
        rng = np.random.RandomState(seed)
        X = rng.geometric(0.4, size=(2000, 3)).astype(float)
        y = (rng.rand(2000) < 0.2).astype(int)
        said.append(verdict(*split(X, y, seed)))
    assert set(said) == {"warned"}


def test_the_very_training_rows_are_refused_even_among_few_distinct_values():
    rng = np.random.RandomState(0)
    X, y = rng.randint(3, size=(2000, 2)), rng.randint(2, size=2000)
    order = rng.permutation(2000)
    assert verdict(X[order], y[order], X, y) == "refused"


def test_the_words(numbers):
    X_new, y_new, X, y = split(*numbers, 0)
    trained = np.sort(row_hashes(X, 2 * y - 1))
    with pytest.raises(ValueError, match="50 of the 50 rows have the same values"):
        refuse_training_rows(row_hashes(X[:50], 2 * y[:50] - 1), trained)
    mixed = np.concatenate([X_new, X[:2]]), np.concatenate([y_new, y[:2]])
    with pytest.warns(UserWarning, match="2 of the 902 rows have the same values"):
        refuse_training_rows(row_hashes(mixed[0], 2 * mixed[1] - 1), trained)


def test_rows_are_shared_as_multisets():
    trained = np.array([1, 1, 2, 3, 3, 3], dtype=np.uint64)
    new = np.array([1, 1, 1, 3, 4], dtype=np.uint64)
    assert shared_rows(new, trained) == 3
    assert not is_leak(new[:0], trained)
    assert not is_leak(new, trained[:0])
