"""
A table that does not fit into memory
=====================================

Months of payments are in a folder of parquet files. The fit reads them in blocks, keeps
one byte a cell on disk, and gives the same model, bit by bit, as a fit in memory.
"""

# %%
# A folder of files
# -----------------
# It is small here, to keep this page quick; 50 million rows work the same way.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

import damvi
from damvi import DAMVIClassifier

X, y = make_classification(
    60_000, n_features=12, n_informative=6, weights=[0.98], flip_y=0.005, random_state=0
)
X = pd.DataFrame(X, columns=[f"x{f}" for f in range(12)])
table = X.assign(is_fraud=y)
folder = Path(tempfile.mkdtemp()) / "payments"
folder.mkdir()
for month, part in enumerate(np.array_split(np.arange(len(table)), 6), 1):
    table.iloc[part].to_parquet(folder / f"2025-{month:02}.parquet")

# %%
# Fit from the folder
# -------------------
# Pass a folder or a pattern instead of a table, and the name of the target.

on_disk = DAMVIClassifier(random_state=0, n_jobs=2).fit(str(folder), "is_fraud")
in_memory = DAMVIClassifier(random_state=0, n_jobs=2, bootstrap="poisson").fit(X, y)
print("the same weights:", np.array_equal(on_disk.weights_, in_memory.weights_))
print("the same votes:", np.array_equal(on_disk.vote(X), in_memory.vote(X)))

# %%
# From the folder to a model with scores
# --------------------------------------
# ``damvi.fit`` takes the folder too, and handles dates, text and ids; so does ``damvi fit
# payments/ --target is_fraud``. Strong models learn from a sample of the rows
# (``pool="strong"``) and vote on all of them.

model = damvi.fit(str(folder), "is_fraud", random_state=0)
print(model)

# %%
# How well rare rows are ranked
# -----------------------------

score = np.sort(on_disk.vote(X[y == 1])), np.sort(on_disk.vote(X[y == 0]))
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for values, name in zip(score, ("positives", "the rest"), strict=True):
    ax.plot(values, np.linspace(0, 1, len(values)), label=name)
ax.axvline(on_disk.threshold_, color="grey", linestyle="--", label="threshold")
ax.set(xlabel="vote", ylabel="share of rows up to it")
ax.legend()
plt.show()
