"""Moments: additive, exact for hard votes, and equal to the slow definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from damvi import moments as module
from damvi import risks
from damvi.moments import (
    FRACTIONAL_BITS,
    MAX_WEIGHT,
    Moments,
    OutOfBagMoments,
    c_bound_of,
    nearest_semi_definite,
)

EITHER = st.booleans()


@st.composite
def any_votes(draw, soft=EITHER):
    """Votes, signs, example weights and a distribution over the voters."""
    n, K = draw(st.integers(1, 40)), draw(st.integers(1, 8))
    rng = np.random.RandomState(draw(st.integers(0, 2**32 - 1)))
    signs = rng.choice([-1, 1], n).astype(np.int8)
    right = rng.rand(n, K) < draw(st.floats(0.1, 0.9))
    votes = np.where(right, signs[:, None], -signs[:, None]).astype(np.int8)
    if draw(soft):
        votes = votes * rng.rand(n, K)
    weights = rng.rand(n) ** draw(st.sampled_from([0, 1, 5]))
    return votes, signs, weights, rng.dirichlet(np.ones(K))


hard_votes = any_votes(soft=st.just(False))


def rounded(weights):
    return np.rint(weights * 2.0**FRACTIONAL_BITS) / 2.0**FRACTIONAL_BITS


@given(any_votes())
def test_moments_are_the_sums_of_the_paper(given_votes):
    votes, signs, weights, _ = given_votes
    moments = Moments.of(votes, signs, weights)
    unit, D = 2.0**FRACTIONAL_BITS, rounded(weights)
    np.testing.assert_allclose(moments.m / unit, votes.T @ (D * signs), atol=1e-12)
    np.testing.assert_allclose(moments.M / unit, votes.T @ np.diag(D) @ votes, atol=1e-12)
    assert moments.total / unit == pytest.approx(D.sum(), abs=1e-12)


@given(any_votes())
def test_the_quantities_agree_with_their_slow_definitions(given_votes):
    votes, signs, weights, Q = given_votes
    weights = rounded(np.maximum(weights, 1e-3))
    moments = Moments.of(votes, signs, weights)
    assert moments.gibbs_risk(Q) == pytest.approx(
        risks.gibbs_risk(votes, signs, Q, weights), abs=1e-12
    )
    assert moments.disagreement(Q) == pytest.approx(
        risks.disagreement(votes, Q, weights), abs=1e-12
    )
    assert moments.c_bound(Q) == pytest.approx(
        risks.c_bound(votes, signs, Q, weights), abs=1e-9
    )


@given(hard_votes, st.data())
def test_blocks_add_up_bit_by_bit_in_any_split_and_order(given_votes, data):
    votes, signs, weights, _ = given_votes
    n = len(signs)
    order = np.array(data.draw(st.permutations(range(n))))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=5)))
    blocks = [
        Moments.of(votes[rows], signs[rows], weights[rows])
        for rows in np.split(order, cuts)
    ]
    blocks = data.draw(st.permutations(blocks))
    assert sum(blocks) == Moments.of(votes, signs, weights)


@given(hard_votes, st.integers(1, 6), st.integers(0, 99))
def test_folds_add_up_to_the_whole_and_leaving_one_out_is_a_subtraction(
    given_votes, n_folds, seed
):
    votes, signs, weights, _ = given_votes
    folds = np.random.RandomState(seed).randint(0, n_folds, len(signs))
    by_fold = Moments.by_fold(votes, signs, weights, folds, n_folds)
    whole = Moments.of(votes, signs, weights)
    assert sum(by_fold) == whole
    for fold, moments in enumerate(by_fold):
        rest = folds != fold
        assert whole - moments == Moments.of(votes[rest], signs[rest], weights[rest])


@pytest.mark.parametrize("block_bytes", [8, 1000, 2**26])
def test_the_block_size_changes_no_bit(monkeypatch, block_bytes):
    rng = np.random.RandomState(0)
    votes = rng.choice([-1, 1], (5000, 7)).astype(np.int8)
    signs, weights = rng.choice([-1, 1], 5000), rng.rand(5000) * MAX_WEIGHT
    expected = Moments.of(votes, signs, weights)
    monkeypatch.setattr(module, "BLOCK_BYTES", block_bytes)
    assert Moments.of(votes, signs, weights) == expected


def test_a_full_block_of_the_heaviest_weights_is_still_exact():
    n = module.MAX_BLOCK_ROWS
    votes = np.ones((n, 1), dtype=np.int8)
    weights = np.full(n, MAX_WEIGHT)
    weights[0] = 2.0**-FRACTIONAL_BITS  # one unit, lost if the sum were rounded
    moments = Moments.of(votes, votes[:, 0], weights)
    units = (n - 1) * int(MAX_WEIGHT * 2**FRACTIONAL_BITS) + 1
    assert moments.total == moments.m[0] == moments.M[0, 0] == units


def test_one_differing_row_makes_moments_unequal():
    votes = np.ones((4, 2), dtype=np.int8)
    whole = Moments.of(votes, np.array([1, 1, 1, 1]))
    assert whole != Moments.of(votes, np.array([1, 1, 1, -1]))
    assert whole != Moments.of(votes[:3], np.array([1, 1, 1]))
    assert whole != "moments"


@given(any_votes(), st.sampled_from([2.0**-20, 0.5, 2.0]))
def test_the_scale_of_the_example_weights_is_free(given_votes, factor):
    votes, signs, weights, Q = given_votes
    weights = np.rint(weights * 2.0**10) / 2.0**10 + 2.0**-10
    moments, scaled = (
        Moments.of(votes, signs, D) for D in (weights, np.minimum(weights * factor, 4))
    )
    assert scaled.gibbs_risk(Q) == pytest.approx(moments.gibbs_risk(Q), abs=1e-12)
    assert scaled.disagreement(Q) == pytest.approx(moments.disagreement(Q), abs=1e-12)


def test_the_c_bound_promises_nothing_when_the_vote_is_no_better_than_a_coin():
    assert c_bound_of(0.0, 0.5) == 1.0
    assert c_bound_of(-0.6, 0.5) == 1.0
    assert c_bound_of(0.6, 0.5) == pytest.approx(0.28)
    inverted = Moments.of(np.array([[-1], [1], [1]]), np.array([1, -1, -1]))
    assert inverted.c_bound([1.0]) == 1.0


def test_adding_something_else_is_a_type_error():
    moments = Moments.of(np.ones((1, 1), dtype=int), np.ones(1))
    for wrong in (lambda: moments + 1, lambda: 1 + moments, lambda: moments - 1):
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "weights has shape .* 2 rows; give one weight per row"),
        ([1.0, -1.0], r"must be in \[0, 4\], but are in \[-1, 1\]"),
        ([1.0, 5.0], "divide them by their maximum"),
        ([1.0, np.nan], "must be in"),
    ],
)
def test_bad_example_weights_are_named(weights, message):
    with pytest.raises(ValueError, match=message):
        Moments.of(np.ones((2, 1), dtype=int), np.ones(2), weights)


@pytest.mark.parametrize(
    ("votes", "signs", "message"),
    [
        (np.ones(3), np.ones(3), r"shape \(n, K\)"),
        (np.ones((3, 2)), np.ones(2), r"but have \(3, 2\) and \(2,\)"),
        (np.ones((3, 2), dtype=bool), np.ones(3), "not bool"),
        (np.ones((3, 2), dtype=np.uint8), np.ones(3), "not uint8"),
    ],
)
def test_bad_votes_are_named(votes, signs, message):
    with pytest.raises(ValueError, match=message):
        Moments.of(votes, signs)


def test_moments_of_nothing_cannot_be_normalised():
    empty = Moments.of(np.empty((0, 2), dtype=int), np.empty(0))
    with pytest.raises(ValueError, match="no example of positive weight"):
        empty.normalised()


@given(seed=st.integers(0, 10**6), omega=st.integers(2, 9))
def test_moments_at_omega_are_those_of_the_shifted_votes(seed, omega):
    rng = np.random.default_rng(seed)
    right = rng.choice([-1, 1], (30, 5)).astype(np.int8)
    D = rng.integers(1, 9, 30) / 8
    found = Moments.of(right, np.ones(30), D).at(omega)
    a = (right > 0) - 1 / omega
    m, M = found.normalised()
    if omega == 2:  # on the scale of the votes
        m, M = m / 2, M / 4
    np.testing.assert_allclose(m, D @ a / D.sum(), atol=1e-9)
    np.testing.assert_allclose(M, a.T @ (a * D[:, None]) / D.sum(), atol=1e-9)


@pytest.mark.parametrize("soft", [False, True])
@given(seed=st.integers(0, 300))
def test_out_of_bag_moments_are_means_over_the_rows_of_each_pair(soft, seed):
    rng = np.random.default_rng(seed)
    signs = np.where(rng.random(120) < 0.25, 1, -1).astype(np.int8)
    votes = np.tanh(signs[:, np.newaxis] * 0.5 + rng.normal(size=(120, 5)))
    votes = votes.astype(np.float32) if soft else np.sign(votes).astype(np.int8)
    outside, folds = rng.random((120, 5)) < 0.7, rng.integers(0, 3, 120)
    weights = rng.uniform(0.1, 1, 120)
    by_fold = OutOfBagMoments.by_fold(votes, outside, signs, weights, folds, 3)
    whole = by_fold[0] + by_fold[1] + by_fold[2]
    without = whole - by_fold[1]
    for sums, rows in ((whole, folds >= 0), (without, folds != 1)):
        for k in range(5):
            mine = rows & outside[:, k]
            D = weights[mine]
            m = (D * signs[mine] * votes[mine, k]).sum() / D.sum()
            assert sums.sums.m[k] / sums.rows.M[k, k] == pytest.approx(m, abs=1e-6)
            for other in range(5):
                both = mine & outside[:, other]
                D = weights[both]
                M = (D * votes[both, k] * votes[both, other]).sum() / D.sum()
                entry = sums.sums.M[k, other] / sums.rows.M[k, other]
                assert entry == pytest.approx(M, abs=1e-6)
    m, M = whole.at(2).normalised()
    assert np.linalg.eigvalsh(M)[0] > 0


@given(st.integers(0, 300))
def test_the_nearest_semi_definite_matrix(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(6, 6))
    A = A + A.T
    near = nearest_semi_definite(A)
    assert np.linalg.eigvalsh(near)[0] >= -1e-9
    # No other one is nearer.
    for _ in range(20):
        B = rng.normal(size=(6, 6))
        assert np.linalg.norm(A - near) <= np.linalg.norm(A - B @ B.T) + 1e-4
    good = A @ A.T + np.eye(6)
    assert nearest_semi_definite(good) is good


def test_voters_that_share_no_row_count_as_independent():
    votes = np.ones((4, 2), np.int8)
    outside = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], bool)
    signs = np.array([1, -1, 1, 1])
    (fold,) = OutOfBagMoments.by_fold(votes, outside, signs, None, np.zeros(4, int), 1)
    m, M = fold.at(2).normalised()
    np.testing.assert_allclose(m, [0, 1])
    np.testing.assert_allclose(M, [[1, 0], [0, 1]])
