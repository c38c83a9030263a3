"""
Rows that keep arriving, and drift
==================================

The voters stay; their weights follow the rows. Each batch is judged before it is
learned from, so a change shows as soon as it comes.
"""

# %%
# A sensor goes wrong
# -------------------
# After four batches, the column that matters most is measured with an offset.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import damvi
from damvi import DAMVIClassifier, VoteStream

rng = np.random.default_rng(0)


def rows(n, offset=0.0):
    X = rng.normal(size=(n, 6))
    y = rng.random(n) < 1 / (1 + np.exp(4.2 - 2.2 * X[:, 0] - 1.2 * X[:, 1] * X[:, 2]))
    X[:, 0] += offset
    return X, y.astype(int)


X, y = rows(5000)
model = DAMVIClassifier(random_state=0).fit(X, y)

# %%
# With labels
# -----------
# Each batch is first compared with the rows so far (by the positive rate, the Gibbs risk
# and the disagreement of the voters), then learned from.

stream = VoteStream(model, half_life=5000)
told = []
for batch in range(10):
    drift = stream.partial_fit(*rows(1000, offset=2.0 if batch >= 4 else 0.0))
    told.append(drift)
print(told[3], told[4], sep="\n\n")

# %%
# Without labels
# --------------
# Labels come weeks later; the columns come now. A model of a table remembers what they
# contained in training.

names = [f"sensor {f}" for f in range(6)]
table = pd.DataFrame(X, columns=names).assign(failed=np.where(y == 1, "yes", "no"))
watch = damvi.fit(table, "failed", pool="trees", random_state=0)
wrong = watch.drift(pd.DataFrame(rows(1000, offset=2.0)[0], columns=names))
print(wrong.summary)

# %%
# Drift, batch by batch
# ---------------------

risk = [one.gibbs_risk.now for one in told]
fig, ax = plt.subplots(figsize=(6.5, 3), layout="constrained")
colours = ["#8a4b08" if one.beyond_chance else "#9cc5cf" for one in told]
ax.bar(range(1, 11), risk, color=colours)
ax.set(xlabel="batch of 1,000 rows", ylabel="Gibbs risk", xticks=range(1, 11))
ax.set_title("dark: more than chance explains")
plt.show()
