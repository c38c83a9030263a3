"""
A table larger than one machine
===============================

When the rows are spread over many machines, the voters go to the rows. Dask does the
moving; the model is the same, bit by bit, however the rows are partitioned and
whichever worker gets them.
"""

# %%
# A cluster of two workers
# ------------------------
# On this machine, for the lesson. ``Client("tcp://scheduler:8786")`` would be a real one.

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from distributed import Client
from sklearn.datasets import make_classification

from damvi import DAMVIClassifier
from damvi.distributed import fit, predict

X, y = make_classification(
    20_000, n_features=10, n_informative=6, weights=[0.97], random_state=0
)
table = pd.DataFrame(X, columns=[f"x{f}" for f in range(10)]).assign(is_fraud=y)
client = Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)

# %%
# Three ways to partition the rows
# --------------------------------

models = {}
for pieces in (2, 5, 11):
    cut = dd.from_pandas(table, npartitions=pieces)
    models[pieces] = fit(DAMVIClassifier(random_state=0), cut, "is_fraud")
    print(pieces, "pieces, C-bound", models[pieces].c_bound_)

# %%
# Predictions are lazy, like everything in Dask:

rows = dd.from_pandas(table.drop(columns="is_fraud"), npartitions=4)
flags = predict(models[5], rows)
print(int((flags == 1).sum().compute()), "rows flagged")
client.close()

# %%
# The same weights, to the bit
# ----------------------------

fig, axes = plt.subplots(1, 3, figsize=(8, 2.6), sharey=True, layout="constrained")
for ax, (pieces, model) in zip(axes, models.items(), strict=True):
    ax.bar(np.arange(100), model.weights_, color="#0b5c6b")
    ax.set(title=f"{pieces} pieces", xlabel="tree")
axes[0].set(ylabel="weight")
plt.show()
assert all(np.array_equal(models[2].weights_, one.weights_) for one in models.values())
