"""Thresholds and probabilities from few positives: what they are worth, on known votes.

    python benchmarks/decisions.py   # about two minutes

1. Coin flips: F1 on the rows tuned on, cross-fitted, and of flagging every row.
2. Coverage: how often a 90 % interval holds the true worth of the threshold, and how often
   the best threshold of all. Truth is taken from 400,000 more rows of the same kind.
3. Curves: log loss on new rows of the calibrated votes, in % of the bare class rate's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from setting import print_setting
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict, train_test_split

from damvi import DAMVIClassifier, datasets
from damvi.decision import calibrate_vote, tune, tune_threshold

RATE = 0.05
CURVES = ("platt", "beta", "isotonic")
AIMS = {
    "F1": ("f1", False),
    "F1, smoothed": ("f1", True),
    "recall >= 0.8": ({"recall": 0.8}, False),
    "precision >= 0.5": ({"precision": 0.5}, False),
    "cost 1 to 20": ({"cost": (1, 20)}, False),
    "cost 1 to 20, smoothed": ({"cost": (1, 20)}, True),
}
"""What a threshold is tuned for, and whether by expected counts."""
Draw = Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]


def coin_flips(seeds: int = 100) -> None:
    print(f"F1 on coin flips: 1,000 rows, 5 % positive, {seeds} seeds (mean ± its error)")
    table = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        targets = rng.permutation(np.repeat([1, 0], [50, 950]))
        tuning = tune(rng.standard_normal(1000), targets, "f1", seed=seed)
        table.append((tuning.value, tuning.honest_value))
    means, errors = np.mean(table, 0), np.std(table, 0, ddof=1) / np.sqrt(seeds)
    for words, mean, error in zip(("tuned on", "cross-fitted"), means, errors, strict=True):
        print(f"  {words:13s} {mean:.3f} ± {error:.3f}")
    print(f"  flagging all  {2 * 50 / (1000 + 50):.3f}\n")


def known_votes(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    targets = rng.permutation(np.repeat([1, 0], [round(RATE * n), n - round(RATE * n)]))
    return np.tanh(targets - 1 + 0.4 * rng.standard_normal(n)), targets


def worth(aim: object, threshold: float, vote: np.ndarray, targets: np.ndarray) -> float:
    """What a threshold gives on rows that it was not tuned on."""
    flagged, positive = vote > threshold, targets == 1
    found, alarms = (flagged & positive).sum(), (flagged & ~positive).sum()
    missed = positive.sum() - found
    if aim == "f1":
        return 2 * found / (2 * found + alarms + missed)
    if isinstance(aim, dict) and "cost" in aim:
        alarm, miss = aim["cost"]
        return (alarm * alarms + miss * missed) / len(vote)
    if "recall" in aim:
        return found / max(found + alarms, 1)
    return found / positive.sum()


def coverage(draws: int = 200) -> None:
    print(f"Coverage of 90 % intervals, {draws} draws, 5 % positive")
    print("    rows  objective               value  threshold")
    vote, targets = known_votes(400_000, np.random.default_rng(10**6))
    for n in (400, 2000):
        for words, (aim, smooth) in AIMS.items():
            best = tune_threshold(vote, targets, aim)
            held = []
            for seed in range(draws):
                known = known_votes(n, np.random.default_rng(seed))
                tuning = tune(*known, aim, seed=seed, smooth=smooth)
                true = worth(aim, tuning.threshold, vote, targets)
                low, high = tuning.value_interval
                lowest, highest = tuning.threshold_interval
                held.append((low <= true <= high, lowest <= best <= highest))
            value, threshold = np.mean(held, axis=0)
            print(f"  {n:6,d}  {words:22s} {value:6.0%} {threshold:10.0%}", flush=True)
    print()


def soft(scale: float) -> Draw:
    """Votes 2p - 1 whose log-odds are ``scale`` times what they should be."""

    def draw(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        odds = rng.normal(-4.2, 1.9, n)
        targets = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), 1, 0)
        return np.tanh(scale * odds / 2), targets

    return draw


def hard(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The mean of 100 voters' decisions, on rows of different difficulty."""
    odds = rng.normal(-4.2, 1.9, n)
    targets = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), 1, 0)
    share = rng.binomial(100, 1 / (1 + np.exp(-(odds + 2)))) / 100
    return 2 * share - 1, targets


def steps(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The chance jumps twice and is level elsewhere."""
    vote = rng.uniform(-1, 1, n)
    chance = np.select([vote > 0.9, vote > 0.5], [0.6, 0.06], 0.003)
    return vote, np.where(rng.random(n) < chance, 1, 0)


def gaussian(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    targets = np.where(rng.random(n) < RATE, 1, 0)
    return rng.standard_normal(n) + 1.2 * (2 * targets - 1), targets


def losses(old: tuple[np.ndarray, np.ndarray], new: tuple[np.ndarray, np.ndarray]) -> list:
    (vote, targets), (new_vote, new_targets) = old, new
    positive = new_targets == 1
    bare = log_loss(positive, np.full(len(positive), (targets == 1).mean()))
    shares = []
    for method in CURVES:
        chance = calibrate_vote(vote, targets, method=method)(new_vote)
        shares.append(100 * log_loss(positive, chance) / bare)
    return shares


def rows_with(draw: Draw, positives: int, rng: np.random.Generator) -> tuple:
    """As many rows as hold this many positives, on average."""
    rate = (draw(100_000, np.random.default_rng(0))[1] > 0).mean()
    return draw(round(positives / rate), rng)


def curves() -> None:
    print("Log loss on new rows in % of the bare class rate's: Platt, beta, isotonic")
    simulated = {
        "soft, overconfident": soft(2.0),
        "soft, honest": soft(1.0),
        "hard, 100 voters": hard,
        "the truth has steps": steps,
        "Gaussian": gaussian,
    }
    for words, draw in simulated.items():
        new = draw(100_000, np.random.default_rng(10**6))
        for positives, draws in ((30, 20), (300, 20), (1000, 5)):
            found = []
            for seed in range(draws):
                old = rows_with(draw, positives, np.random.default_rng(seed))
                found.append(losses(old, new))
            tell(words, positives, found)
    data = datasets.load("mammography")
    targets = np.where(data.target == 1, 1, 0)
    boosting = HistGradientBoostingClassifier(random_state=0)
    folded = cross_val_predict(boosting, data.data, targets, cv=5, method="predict_proba")
    model = DAMVIClassifier(random_state=0).fit(data.data, data.target)
    for words, vote in (
        ("Mammography, DAMVI out of bag", model.oob_decision_function_),
        ("Mammography, boosting out of fold", 2 * folded[:, 1] - 1),
    ):
        for positives in (30, 130):
            found = []
            for seed in range(20):
                train, test = train_test_split(
                    np.arange(len(targets)),
                    train_size=positives / (targets == 1).sum(),
                    stratify=targets,
                    random_state=seed,
                )
                old, new = (vote[train], targets[train]), (vote[test], targets[test])
                found.append(losses(old, new))
            tell(words, positives, found)


def tell(words: str, positives: int, found: list) -> None:
    means = " ".join(f"{mean:7.1f}" for mean in np.mean(found, axis=0))
    print(f"  {words:34s} {positives:6,d} {means}", flush=True)


def main() -> None:
    warnings.simplefilter("ignore")
    print_setting("scikit-learn", "numpy")
    coin_flips()
    coverage()
    curves()


if __name__ == "__main__":
    main()
