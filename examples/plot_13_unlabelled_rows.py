"""
Few labels, many unlabelled rows: do not expect much
====================================================

How voters agree with each other needs no labels, so unlabelled rows can refine the
second moments of the C-bound. The honest lesson: it costs little, and seldom changes
anything. More labels are worth more.
"""

# %%
# 200 labels, 5,000 unlabelled rows
# ---------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score

from damvi import DAMVIClassifier, Unlabeled

X, y = make_classification(
    12_000, n_features=12, n_informative=6, weights=[0.9], class_sep=0.8, random_state=0
)
X_new, y_new = X[8000:], y[8000:]


def score(model):
    return average_precision_score(y_new, model.decision_function(X_new))


# %%
# With and without them
# ---------------------
# The trees are the same; only the weights learn from unlabelled rows.

found = {"without": [], "with unlabelled": [], "twice the labels": []}
for seed in range(8):
    rows = np.random.default_rng(seed).permutation(8000)
    some, more, rest = rows[:200], rows[:400], rows[400:5400]
    options = {"random_state": seed, "votes": "oob", "stratified": True}
    plain = DAMVIClassifier(**options).fit(X[some], y[some])
    found["without"].append(score(plain))
    refined = DAMVIClassifier(unlabeled_weight=0.5, **options)
    refined.fit(X[some], y[some], X_unlabeled=Unlabeled(X[rest]))
    found["with unlabelled"].append(score(refined))
    found["twice the labels"].append(
        score(DAMVIClassifier(**options).fit(X[more], y[more]))
    )

# %%
# The result
# ----------

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
values = np.array(list(found.values()))
ax.plot(range(3), values, color="#9cc5cf")
ax.plot(range(3), values.mean(axis=1), "o-", color="#0b5c6b", linewidth=3)
ax.set(xticks=range(3), xticklabels=found, ylabel="average precision")
plt.show()

gain = values[1] - values[0]
print(f"unlabelled rows: {gain.mean():+.3f} ± {gain.std(ddof=1) / np.sqrt(len(gain)):.3f}")
gain = values[2] - values[0]
print(f"twice the labels: {gain.mean():+.3f} ± {gain.std(ddof=1) / np.sqrt(len(gain)):.3f}")
