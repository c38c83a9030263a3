"""
Machine failures: what a miss costs
===================================

A false alarm stops the line for ten minutes. A missed failure breaks a tool. F1 knows
neither price; a threshold that does is cheaper.
"""

# %%
# Three thresholds for one ranking
# --------------------------------
# We fit once for F1, and twice for what errors cost: a miss as bad as 5 false alarms, or
# as 50.

import matplotlib.pyplot as plt
import numpy as np

import damvi

runs = damvi.datasets.load("ai4i2020", as_frame=True).frame
is_new = np.random.default_rng(0).random(len(runs)) < 0.3
past, new = runs[~is_new], runs[is_new]

rules = {"F1": "f1", "miss = 5 alarms": {"cost": (1, 5)}, "miss = 50": {"cost": (1, 50)}}
models = {
    name: damvi.fit(past, "machine_failure", threshold=rule, pool="trees", random_state=0)
    for name, rule in rules.items()
}

# %%
# What each one flags
# -------------------

failed = new["machine_failure"] == "yes"
for name, model in models.items():
    flagged = model.predict(new)["decision"] == "yes"
    found, alarms = (flagged & failed).sum(), (flagged & ~failed).sum()
    print(f"{name:16} {found} of {failed.sum()} found, {alarms} false alarms")

# %%
# What each one costs
# -------------------
# The curve is the cost on the new rows for any number of flags, and the dots are the
# three rules. Each rule was chosen on past rows, and is near the lowest point of its own
# curve.

score = models["F1"].predict(new)["score"].to_numpy()
order = np.argsort(-score)
found = np.cumsum(failed.to_numpy()[order])
flags = np.arange(1, len(order) + 1)

fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for ax, miss in zip(axes, (5, 50), strict=True):
    cost = (flags - found) + miss * (failed.sum() - found)
    ax.plot(flags[:1500], cost[:1500], color="#0b5c6b")
    for name, model in models.items():
        flagged = model.predict(new)["decision"] == "yes"
        spent = (flagged & ~failed).sum() + miss * (~flagged & failed).sum()
        ax.plot(flagged.sum(), spent, "o", label=name)
    ax.set(title=f"a miss costs {miss} alarms", xlabel="rows flagged", ylabel="cost")
axes[0].legend()
plt.show()

# %%
# On the command line this is ``damvi fit runs.csv --target machine_failure --cost-miss
# 50``, and the report has a slider for it.
