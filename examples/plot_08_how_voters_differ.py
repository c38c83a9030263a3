"""
How voters differ, and when weights help
========================================

A vote is better than its voters only where they err on different rows. Weights help
when some voters are much better than others, or when some are alike. When all are of
one kind, weights hardly help. This page shows both.
"""

# %%
# Trees of one kind
# -----------------
# A hundred trees, each on its own sample of the rows. Each dot is a pair: further left
# they differ more, further down they err less.

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier, DAMVIVotingClassifier, datasets, plots

data = datasets.load("mammography")
X, X_new, y, y_new = train_test_split(
    data.data, data.target, test_size=0.3, stratify=data.target, random_state=0
)
trees = DAMVIClassifier(random_state=0).fit(X, y)
plots.KappaErrorDisplay.from_estimator(trees, X_new, y_new)
plt.show()

# %%
# Do weights help such trees?
# ---------------------------
# Few trees carry the vote. Does that pay off? Ten splits, learned weights against equal
# ones, on the same trees:


def gains(make, splits=10):
    found = []
    for seed in range(splits):
        A, B, a, b = train_test_split(
            data.data, data.target, test_size=0.3, stratify=data.target, random_state=seed
        )
        model = make(seed).fit(A, a)
        learned = average_precision_score(b, model.decision_function(B))
        equal = model.reweigh(solver="uniform")
        found.append(learned - average_precision_score(b, equal.decision_function(B)))
    return np.array(found)


of_trees = gains(lambda seed: DAMVIClassifier(random_state=seed))

# %%
# Voters of different quality
# ---------------------------
# Now one good voter among poor ones: a forest, naive Bayes, and trees with a single
# split.


def uneven(seed):
    forest = ExtraTreesClassifier(50, min_samples_leaf=2, random_state=seed)
    cut = partial(DecisionTreeClassifier, max_depth=1, max_features=1)
    poor = [(f"cut {k}", cut(random_state=k)) for k in range(4)]
    return DAMVIVotingClassifier(
        [("forest", forest), ("bayes", GaussianNB()), *poor], random_state=seed
    )


of_uneven = gains(uneven)

# %%
# The result
# ----------

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for place, found in enumerate((of_trees, of_uneven)):
    ax.plot(found, np.full(len(found), place), "o", color="#0b5c6b", alpha=0.5)
    ax.plot(found.mean(), place, "|", color="#8a4b08", markersize=30, markeredgewidth=3)
ax.axvline(0, color="grey", linewidth=1)
ax.set(
    yticks=[0, 1],
    yticklabels=["100 trees of one kind", "voters of different worth"],
    xlabel="average precision gained by the weights",
    ylim=(-0.6, 1.6),
)
plt.show()

for name, found in {"of one kind": of_trees, "of different worth": of_uneven}.items():
    error = found.std(ddof=1) / np.sqrt(len(found))
    print(f"voters {name}: {found.mean():+.4f} ± {error:.4f}")

# %%
# So do not expect weights to lift trees that are all alike: the paper's own voters gain
# little from them here, and a pool keeps the plain vote where weights do no better.
