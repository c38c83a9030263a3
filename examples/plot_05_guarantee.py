"""
A guarantee: nine in ten will be found
======================================

An out-of-sample recall is an estimate, and half of all estimates are too high. A
guarantee comes from rows that had no part in the model, and states its confidence.
"""

# %%
# Set rows aside
# --------------
# ``guarantee={"recall": 0.9}`` keeps 30% of the rows away from voters, weights and
# calibration. The threshold comes only from the positives among them.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

import damvi

X, y = make_classification(
    40_000, n_features=10, n_informative=5, weights=[0.95], flip_y=0, random_state=3
)
table = pd.DataFrame(X.round(3), columns=[f"x{f}" for f in range(10)])
table["ill"] = np.where(y == 1, "yes", "no")
past, later, new = table[:5000], table[5000:6500], table[20_000:]

forest = damvi.contenders.make_contender("RF", random_state=0)
pool = [("forest", forest.set_params(min_samples_leaf=5))]
model = damvi.fit(past, "ill", guarantee={"recall": 0.9}, pool=pool, random_state=0)
print(model.scores["guarantee"]["words"])

# %%
# A table that arrives later works too, and costs no training rows. It must not contain
# training rows.

plain = damvi.fit(past, "ill", pool=pool, random_state=0)
promise = plain.guarantee(later, recall=0.9, confidence=0.95)
print(promise)

# %%
# If there are too few rows for the guarantee, it says how many it would take:

print(plain.guarantee(later[:200], recall=0.95))

# %%
# Does it hold?
# -------------
# We draw 300 tables of 1,500 rows, take a threshold from each, and look at the recall on
# 20,000 other rows. A threshold at the estimated recall fails half of the time; the
# guarantee fails at most one time in ten.

score = plain.predict(table[5000:])["score"].to_numpy()
ill = (table["ill"] == "yes").to_numpy()[5000:]
held, rest = np.arange(15_000), np.arange(15_000, 35_000)
rng = np.random.default_rng(0)
kept = {"estimate": [], "guarantee": []}
for _ in range(300):
    drawn = rng.choice(held, 1500, replace=False)
    own = np.sort(score[drawn][ill[drawn]])
    cuts = {
        "estimate": own[int(0.1 * len(own))],
        "guarantee": damvi.decision.guarantee(
            score[drawn], ill[drawn].astype(int), "recall", 0.9
        ).threshold,
    }
    for name, cut in cuts.items():
        kept[name].append((score[rest][ill[rest]] > cut).mean())

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, found in kept.items():
    below = np.mean(np.array(found) < 0.9)
    ax.hist(found, bins=30, alpha=0.7, label=f"{name}: below 0.9 in {below:.0%}")
ax.axvline(0.9, color="black", linewidth=1)
ax.set(xlabel="recall on 20,000 other rows", ylabel="of 300 tables")
ax.legend()
plt.show()
