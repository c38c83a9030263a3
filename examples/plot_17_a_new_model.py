"""
Is the new model better?
========================

This year's new rows are labelled. Is a model of all rows better than the one in
production, or just newer? We fit it with the old one's settings, and compare the two on
the same rows.
"""

# %%
# The model in production
# -----------------------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import damvi

rng = np.random.default_rng(0)


def payments(n):
    table = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))
    odds = -4 + 1.3 * table["a"] + 1.1 * table["b"] * table["c"] + 0.7 * table["d"]
    table["fraud"] = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    return table


first, later, test = payments(2000), payments(10_000), payments(6000)
old = damvi.fit(first, "fraud", threshold={"cost": (1, 10)}, pool="trees", random_state=0)

# %%
# The same settings on more rows
# ------------------------------
# Target, columns, voters, seed and the purpose of the threshold are taken from the old
# model.

new = damvi.fit(pd.concat([first, later], ignore_index=True), like=old)

# %%
# Paired differences
# ------------------
# Both are judged on the same rows, so chance that they share cancels out. Training rows
# of either would be recognised, and judged out of sample.

found = old.compare(new, test)
print(found)

# %%
# Where they differ
# -----------------
# The rows on which they differ are the ones a person may want to look at.

differ = found.rows
fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
right = differ["new decision"] == differ["label"]
for now, colour, name in ((right, "#0b5c6b", "new"), (~right, "#8a4b08", "old")):
    some = differ[now]
    ax.scatter(some["old score"], some["new score"], s=12, color=colour, alpha=0.6,
               label=f"the {name} one is right: {len(some)}")  # fmt: skip
ax.set(xlabel="old score", ylabel="new score", title="rows that the two decide otherwise")
ax.legend()
plt.show()
