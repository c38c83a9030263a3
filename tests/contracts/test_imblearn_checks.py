"""imbalanced-learn's own checks of a classifier."""

import pytest
from imblearn.utils.estimator_checks import parametrize_with_checks

from damvi import DAMVIClassifier

checks = parametrize_with_checks([DAMVIClassifier(n_estimators=10)]).mark


# A list, since imbalanced-learn hands pytest a generator, which it deprecates.
@pytest.mark.parametrize(checks.args[0], list(checks.args[1]), **checks.kwargs)
@pytest.mark.filterwarnings("ignore:No voter is better than chance:UserWarning")
def test_imbalanced_learn_finds_nothing_to_complain_about(estimator, check):
    check(estimator)
