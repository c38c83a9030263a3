"""Importing this loads the compiled kernels.

Processes forked after it start ready, and their times are the methods' own.
"""

from __future__ import annotations

import numpy as np

from damvi import DAMVIClassifier

rng = np.random.default_rng(0)
X, y = rng.normal(size=(2000, 3)), rng.random(2000) < 0.3  # noise grows large trees
for stratified in (False, True):
    DAMVIClassifier(n_estimators=4, stratified=stratified).fit(X, y).predict(X)
