"""
What to label next
==================

Labels are expensive: somebody has to look. With 300 labels and 8,000 rows without,
which 25 rows should be looked at today?
"""

# %%
# Start with few labels
# ---------------------

import matplotlib.pyplot as plt
import numpy as np

import damvi

data = damvi.datasets.load("mammography", as_frame=True)
table, target = data.frame, data.target_name
rng = np.random.default_rng(0)
order = rng.permutation(len(table))
table = table.iloc[order].reset_index(drop=True)
truth = table[target].copy()
known = np.zeros(len(table), bool)
known[:300] = True


def model_of(known):
    return damvi.fit(table[known], target, pool="trees", random_state=0)


model = model_of(known)
positive = model.target.positive

# %%
# Which rows are worth a look
# ---------------------------
# Each comes with a reason. Rows without a label are judged as new ones.

unknown = table[~known].drop(columns=target)
review = model.review(unknown, budget=25)
review.rows[["row", "score", "probability", "why"]].head()

# %%
# Ten rounds of 25
# ----------------
# Look, learn, ask again; compared with the same number of rows drawn at random.


def found_by(choose, rounds=10):
    known_now, counts = known.copy(), []
    for _ in range(rounds):
        rest = np.flatnonzero(~known_now)
        known_now[rest[choose(known_now, rest)]] = True
        counts.append((truth[known_now].astype(str) == positive).sum())
    return np.array(counts)


def by_review(known_now, rest):
    asked = model_of(known_now).review(table.loc[rest].drop(columns=target), budget=25)
    return asked.rows["row"].to_numpy() - 1


def at_random(known_now, rest):
    return rng.choice(len(rest), 25, replace=False)


counts = {"review": found_by(by_review), "at random": found_by(at_random)}

# %%
# The result
# ----------

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, found in counts.items():
    ax.plot(25 * np.arange(1, len(found) + 1), found, "o-", label=name)
ax.set(xlabel="labels bought", ylabel="positives known")
ax.legend()
plt.show()

# %%
# Find wrong labels
# -----------------
# If there are labels, the same call finds those that the vote contradicts. We corrupt 20
# of the 260 positives. Some rows look wrong and are not: look before you correct.

spoiled = table.copy()
cases = np.flatnonzero(truth.astype(str) == positive)[:20]
spoiled.loc[cases, target] = truth[truth.astype(str) != positive].iloc[0]
doubt = damvi.fit(spoiled, target, pool="trees", random_state=0).review(spoiled, budget=40)
hits = np.isin(doubt.rows["row"] - 1, cases).sum()
print(f"of the 40 rows most in doubt {hits} are spoiled; by chance it would be none")
