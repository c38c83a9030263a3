"""
Fraud over time: evaluate on what comes later
=============================================

Fraud changes. A model evaluated on rows drawn at random has seen the same week's tricks
in its training rows, and promises what next month will not deliver.
"""

# %%
# A year of payments
# ------------------
# Each month the thieves have stolen other devices: what gives them away in March is
# useless in May. That they are new customers, and in a hurry, stays true all year.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score

import damvi

rng = np.random.default_rng(0)
n = 12_000
when = pd.Timestamp("2025-01-01") + pd.to_timedelta(np.sort(rng.uniform(0, 360, n)), "D")
fraud = rng.random(n) < 0.04
stolen = 3 * when.month.to_numpy() + rng.integers(0, 3, n)
device = np.where(fraud & (rng.random(n) < 0.7), stolen, rng.integers(0, 60, n))
payments = pd.DataFrame(
    {
        "when": when,
        "device": [f"device {number}" for number in device],
        "past_orders": rng.poisson(np.where(fraud, 2, 4)),
        "minutes_on_site": rng.gamma(np.where(fraud, 1.5, 2), 4).round(1),
        "is_fraud": np.where(fraud, "yes", "no"),
    }
)
past, later = payments[when < "2025-10-01"], payments[when >= "2025-10-01"]

# %%
# Two evaluations
# ---------------
# The rows are in time order, so ``damvi.fit`` judges each row only by what was learned
# from earlier rows, and says so. ``shuffle=True`` judges them in random order, as most
# tutorials do.

forward = damvi.fit(past, "is_fraud", pool="trees", random_state=0)
shuffled = damvi.fit(past, "is_fraud", pool="trees", shuffle=True, random_state=0)
print(forward)

# %%
# What the later months gave
# --------------------------

truth = later["is_fraud"] == "yes"


def promise(model):
    figure = model.scores["models"]["DAMVI"]["ap"]
    return figure["value"], figure["low"], figure["high"]


def came(model):
    return average_precision_score(truth, model.predict(later)["score"])


fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for place, model in enumerate((shuffled, forward)):
    value, low, high = promise(model)
    ax.hlines(place, low, high, color="#9cc5cf", linewidth=8, label="promised, 90%")
    ax.plot(value, place, "s", color="#0b5c6b", label="promised")
    ax.plot(came(model), place, "o", color="#8a4b08", label="came")
ax.set(yticks=[0, 1], yticklabels=["shuffled", "forward"], xlabel="average precision")
ax.set_ylim(-0.6, 1.6)
handles, labels = ax.get_legend_handles_labels()
ax.legend(handles[:3], labels[:3])
plt.show()

# %%
# The two models are the same except for their thresholds; only the scores claimed for
# them differ. If the rows are in another order, name the time column with
# ``time="when"``.
