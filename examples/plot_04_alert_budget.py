"""
An alert budget: you can check 200 rows
=======================================

A team checks 200 cases a day, whatever F1 would prefer. How many of these will be hits,
and what would a larger team find?
"""

# %%
# A threshold for a number of flags
# ---------------------------------
# 200 in 10,000 rows: the threshold that flags that many on average, found on votes for
# rows that the voters had not seen. A single day will have more or fewer.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

import damvi

X, y = make_classification(
    30_000, n_features=10, n_informative=5, weights=[0.97], class_sep=0.9, random_state=1
)
table = pd.DataFrame(X.round(3), columns=[f"x{f}" for f in range(10)])
table["fraud"] = np.where(y == 1, "yes", "no")
table["region"] = np.random.default_rng(0).choice(["north", "south", "west"], len(table))
past, new = table[:10_000], table[10_000:]

model = damvi.fit(
    past, "fraud", threshold={"flags": (200, 10_000)}, pool="trees", random_state=0
)
flagged = (model.predict(new)["decision"] == "yes").sum()
print(f"asked for 200 in 10,000: of {len(new):,} new rows {flagged} are flagged")

# %%
# What a budget finds
# -------------------
# Hits in the top k, with an interval that accounts for both the sampling of positives and
# the choice of the cut. All of it is known before any new row arrives.

budgets = [50, 100, 200, 400, 800]
tops = [model.evaluate(past, top=k).top for k in budgets]
print(tops[2].words)

# %%
# What the new rows gave
# ----------------------
# The new rows, 10,000 at a time: the top k of each batch are checked.

batches = [new[:10_000], new[10_000:]]
came = []
for batch in batches:
    checked = [model.predict(batch, top=k).index for k in budgets]
    came.append([(batch.loc[rows, "fraud"] == "yes").sum() for rows in checked])

fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
low, high = ([getattr(top.hits, side) for top in tops] for side in ("low", "high"))
ax.fill_between(budgets, low, high, color="#9cc5cf", label="expected, 90%")
ax.plot(budgets, [top.hits.value for top in tops], color="#0b5c6b")
for hits in came:
    ax.plot(budgets, hits, "o", color="#8a4b08")
ax.set(xlabel="rows that are checked, of 10,000", ylabel="hits")
ax.legend()
plt.show()

# %%
# A budget for each region
# ------------------------
# Three teams with ten visits each:

best = model.predict(new, columns=["region"], top=10, by="region")
best.groupby("region")["probability"].agg(["size", "mean"]).round(2)
