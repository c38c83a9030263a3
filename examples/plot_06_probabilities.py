"""
Probabilities that mean what they say
=====================================

Of the rows with a probability of 30%, three in ten should be positive. A vote is not
such a number; once calibrated, it is.
"""

# %%
# Fit and predict
# ---------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import train_test_split

import damvi

data = damvi.datasets.load("mammography", as_frame=True)
past, new = train_test_split(
    data.frame, test_size=0.5, stratify=data.frame[data.target_name], random_state=0
)
model = damvi.fit(past, data.target_name, pool="trees", random_state=0)
answers = model.predict(new)
truth = (new[data.target_name].astype(str) == str(model.target.positive)).to_numpy()

# %%
# Compare with a balanced forest
# ------------------------------
# Rare classes are often "balanced" by weights. That shifts every probability upwards.

features = [name for name in past.columns if name != data.target_name]
forest = RandomForestClassifier(200, class_weight="balanced", min_samples_leaf=5, n_jobs=2)
forest.fit(past[features], past[data.target_name])
positive = list(forest.classes_).index(new.loc[truth, data.target_name].iloc[0])
balanced = forest.predict_proba(new[features])[:, positive]

# %%
# Predicted and actual
# --------------------

fig, ax = plt.subplots(figsize=(5, 4.2), layout="constrained")
ax.plot([0, 1], [0, 1], "--", color="grey", linewidth=1)
for name, chance in {"damvi": answers["probability"], "balanced forest": balanced}.items():
    true, told = calibration_curve(truth, chance, n_bins=8, strategy="uniform")
    score = brier_score_loss(truth, chance)
    ax.plot(told, true, "o-", label=f"{name} (Brier {score:.4f})")
ax.set(xlabel="probability told", ylabel="share that is positive")
ax.legend()
plt.show()

# %%
# How many positives to expect
# ----------------------------
# The sum of the probabilities is an answer before anybody knows the labels:

expected, real = answers["probability"].sum(), truth.sum()
print(f"expected {expected:.0f} positives of {len(new):,} rows, there were {real}")

# %%
# For a rare class, a probability is seldom above one half, and a decision does not wait
# for that: the threshold is chosen for F1, or for what you name.

flagged = answers["decision"] == model.target.positive
print(f"flagged from a probability of {answers['probability'][flagged].min():.2f} on")
assert np.isfinite(expected)
