"""
A first model, end to end
=========================

A milling machine was run 10,000 times, and failed in 339 runs. Which runs will fail? We
go from the raw table to decisions on new rows, with scores you can trust.
"""

# %%
# The table
# ---------
# The table is bundled. It has numbers, a category, and the answer, "yes" or "no", in one
# column.

import matplotlib.pyplot as plt
import numpy as np

import damvi

runs = damvi.datasets.load("ai4i2020", as_frame=True).frame
runs.head()

# %%
# We hold out some rows to stand in for the future. With real data you need not: the
# scores of a fit already come from rows that it has not seen.

rng = np.random.default_rng(0)
is_new = rng.random(len(runs)) < 0.3
past, new = runs[~is_new], runs[is_new]

# %%
# Fit the model
# -------------
# One call works out what the columns contain, trains different models, weights their
# votes, chooses a threshold, and measures the result out of sample. ``pool="trees"``
# would take a tenth of the time.

model = damvi.fit(past, "machine_failure", random_state=0)
print(model)

# %%
# Each model alone, the plain vote and the weighted vote, all out of sample:

model.leaderboard().round(3)

# %%
# Predict new rows
# ----------------
# Each row gets a score, a probability and a decision. The highest scores first:

answers = model.predict(new)
answers.sort_values("score", ascending=False).head()

# %%
# Did the scores come true?
# -------------------------
# Here we know the truth about the new rows. The bars are what the fit promised, with its
# 90% intervals; the dots are what the new rows gave.

promised = model.scores["models"]["DAMVI"]
came = model.evaluate(new).table

names = ["precision", "recall", "f1", "ap"]
middle = np.array([promised[name]["value"] for name in names])
low = np.array([promised[name]["low"] for name in names])
high = np.array([promised[name]["high"] for name in names])

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
places = np.arange(len(names))
ax.bar(places, middle, yerr=[middle - low, high - middle], color="#9cc5cf", capsize=6)
ax.plot(places, came["value"][: len(names)], "o", color="#8a4b08", label="on new rows")
ax.set(xticks=places, xticklabels=["precision", "recall", "F1", "AP"], ylim=(0, 1))
ax.legend()
plt.show()

# %%
# Next steps
# ----------
# ``model.report(past, "report.html")`` writes a single page to share, and
# ``model.save("model.damvi")`` saves the model to a file that runs no code.
