"""The bundled data is the Mammography of the paper."""

import numpy as np
import pytest

from damvi.datasets import load


def test_mammography_has_the_papers_size_and_share_of_positives():
    data = load("mammography")
    assert data.data.shape == (11183, 6)
    assert data.feature_names == ["f0", "f1", "f2", "f3", "f4", "f5"]
    np.testing.assert_array_equal(np.unique(data.target), [0, 1])
    assert data.target.sum() == 260
    assert np.isfinite(data.data).all()
    assert "calcification" in data.DESCR


def test_its_description_counts_the_duplicates_right():
    data = load("mammography")
    rows = np.column_stack([data.data, data.target])
    repeats = len(rows) - len(np.unique(rows, axis=0))
    assert f"{repeats:,} rows are" in data.DESCR


def test_an_unknown_name_is_told_what_there_is():
    with pytest.raises(
        ValueError, match=r"unknown dataset 'moons'; there is .*'mammography'"
    ):
        load("moons")
