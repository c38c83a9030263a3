"""What the voters say one by one adds up to the vote."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier


@pytest.mark.parametrize("voter", [None, DecisionTreeClassifier(max_depth=3)])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_weighted_votes_are_the_vote(table, fresh, voter, n_jobs):
    model = DAMVIClassifier(voter, n_estimators=9, n_jobs=n_jobs, random_state=0)
    votes = model.fit(*table).cast_votes(fresh)
    assert votes.shape == (len(fresh), 9)
    assert votes.dtype == np.int8
    assert set(np.unique(votes)) <= {-1, 1}
    np.testing.assert_allclose(votes @ model.weights_, model.vote(fresh), atol=1e-15)


def test_votes_are_those_of_the_estimators(table, fresh):
    X, y = table
    names = np.array(["rare", "usual"])[1 - y]
    model = DAMVIClassifier(n_estimators=5, random_state=0).fit(X, names)
    each = np.column_stack([voter.predict(fresh) for voter in model.estimators_])
    np.testing.assert_array_equal(model.cast_votes(fresh), 2 * each - 1)


def test_an_unfitted_model_has_no_votes(fresh):
    with pytest.raises(NotFittedError):
        DAMVIClassifier().cast_votes(fresh)
