"""
A first model, end to end
=========================

A milling machine was run 10,000 times, and failed in 339 runs. Which runs will fail? We
go from the table as it is to decisions on new rows, and to figures that can be
believed.
"""

# %%
# The table
# ---------
# It is bundled. It has numbers, a category and the answer, "yes" or "no", in one column.

import matplotlib.pyplot as plt
import numpy as np

import damvi

runs = damvi.datasets.load("ai4i2020", as_frame=True).frame
runs.head()

# %%
# We keep some rows aside, to play the part of the future. A real future comes by itself,
# and then there is no need to: the figures of a fit are of rows that it has not seen.

rng = np.random.default_rng(0)
is_new = rng.random(len(runs)) < 0.3
past, new = runs[~is_new], runs[is_new]

# %%
# The fit
# -------
# One call: it finds out what the columns hold, trains different models, weighs their votes,
# chooses a threshold, and measures the result out of sample. ``pool="trees"`` would take a
# tenth of the time.

model = damvi.fit(past, "machine_failure", random_state=0)
print(model)

# %%
# Each model alone, the plain vote and the weighted one, all out of sample:

model.leaderboard().round(3)

# %%
# New rows
# --------
# A score, a probability and a decision for each. The highest scores first:

answers = model.predict(new)
answers.sort_values("score", ascending=False).head()

# %%
# Was the promise kept?
# ---------------------
# Here we know the truth about the new rows. The bars are what the fit promised, with its 90
# % intervals; the dots are what came.

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
# To go on
# --------
# ``model.report(past, "report.html")`` writes one page to send to others, and
# ``model.save("model.damvi")`` keeps the model in a file that runs no code.
