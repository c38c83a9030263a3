"""
Your own models as voters
=========================

Any scikit-learn classifiers can vote. The C-bound weights them by how accurate they are
and how they differ. A poor model that errs elsewhere may earn a weight, and a good one
that says the same as another may not.
"""

# %%
# Five voters
# -----------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from damvi import DAMVIVotingClassifier, datasets

data = datasets.load("mammography")
X, X_new, y, y_new = train_test_split(
    data.data, data.target, test_size=0.4, stratify=data.target, random_state=0
)
pool = [
    ("boosting", HistGradientBoostingClassifier(random_state=0)),
    ("extra trees", ExtraTreesClassifier(200, min_samples_leaf=2, random_state=0)),
    ("neighbours", make_pipeline(StandardScaler(), KNeighborsClassifier(15))),
    ("linear", make_pipeline(StandardScaler(), LogisticRegression())),
    ("bayes", GaussianNB()),
]

# %%
# The models are trained fold by fold, so that each row is judged by models that have not
# seen it. The weights are learned from these votes. Then all models are trained on all
# rows.

model = DAMVIVotingClassifier(pool, random_state=0).fit(X, y)
for (name, _), weight in zip(pool, model.weights_, strict=True):
    print(f"{name:12} {weight:.3f}")

# %%
# Alone and together
# ------------------

together = average_precision_score(y_new, model.decision_function(X_new))
alone = [
    average_precision_score(y_new, one.fit(X, y).predict_proba(X_new)[:, 1])
    for _, one in pool
]
names = [name for name, _ in pool]

fig, ax = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
places = np.arange(len(names))
ax.barh(places, alone, color="#9cc5cf")
for place, weight in zip(places, model.weights_, strict=True):
    ax.text(0.01, place, f"weight {weight:.2f}", va="center")
ax.axvline(together, color="#8a4b08", label="the weighted vote")
ax.set(yticks=places, yticklabels=names, xlabel="average precision on new rows")
ax.invert_yaxis()
ax.legend()
plt.show()

# %%
# Change settings without retraining
# ----------------------------------
# The votes are kept, so new weights take milliseconds.

plain = model.reweigh(solver="uniform")
equal = average_precision_score(y_new, plain.decision_function(X_new))
print(f"weighted {together:.3f}, plain {equal:.3f}")
