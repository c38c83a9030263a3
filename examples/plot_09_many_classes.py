"""
Three or more classes, some of them rare
========================================

A machine fails in several ways, and each has its own repair. There is nothing to switch
on: the values of the target decide.
"""

# %%
# A table with four classes
# -------------------------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

import damvi

X, y = make_classification(
    3000,
    n_features=8,
    n_informative=6,
    n_classes=4,
    n_clusters_per_class=1,
    weights=[0.86, 0.08, 0.04],
    class_sep=1.4,
    random_state=0,
)
kinds = np.array(["fine", "worn tool", "heat", "power"])
table = pd.DataFrame(X.round(3), columns=[f"sensor {f}" for f in range(8)])
table["fault"] = kinds[y]
table["fault"].value_counts()

# %%
# One model for all of them
# -------------------------

model = damvi.fit(table, "fault", pool="trees", random_state=0)
print(model)

# %%
# The confusion matrix
# --------------------
# These are training rows, and are recognised: each is judged by voters, weights and
# factors that had not seen it.

judged = model.evaluate(table)
counts = judged.figures.confusion
shares = counts / counts.sum(axis=1, keepdims=True)

fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.imshow(shares, cmap="GnBu", vmin=0, vmax=1)
for (row, column), share in np.ndenumerate(shares):
    ax.text(column, row, f"{share:.0%}", ha="center", va="center",
            color="white" if share > 0.6 else "black")  # fmt: skip
places = range(len(judged.names))
ax.set(xticks=places, xticklabels=judged.names, yticks=places, yticklabels=judged.names)
ax.set(xlabel="decided", ylabel="true")
plt.show()

# %%
# A factor for each class
# -----------------------
# Each class gets a factor, tuned for the mean of their F1 scores. Above 1, it helps a
# class that would be found too seldom.

for name, factor in zip(judged.names, model.classifier.threshold_, strict=True):
    print(f"{name:10} {factor:.2f}")
