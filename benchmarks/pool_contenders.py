"""Ways to make one vote of the same pool's votes, and what each is worth on test rows.

A combiner gets out-of-fold votes of the training rows and the votes on the test rows, and
returns two votes: one on the training rows, where each fold is judged by weights learned on
the other folds, and one on the test rows, by weights learned on all folds. The former sets
the threshold and the probability, the latter is scored. As in DAMVIVotingClassifier, the
voters that vote on the other folds, and their calibrators, have seen the fold that is
judged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    f1_score,
    log_loss,
    matthews_corrcoef,
)

from damvi import DAMVIVotingClassifier
from damvi.decision import calibrate_vote, calibrate_votes, tune_threshold
from damvi.decision.calibration import log_odds
from damvi.selection import choose_settings, keep_better_vote
from damvi.votes import Votes
from damvi.weighting import Settings, minimize_c_bound

Array = NDArray[Any]

ROUNDS = 50
"""Of greedy ensemble selection."""
CALIBRATIONS = ("raw", "isotonic", "auto")
BALANCES = (0.0, 0.25, 0.5, 1.0)
SHRINKAGES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
N_BINS = 20
"""Of a reliability diagram, with equally many rows in each."""

DAMVI, BEST, BEST_F1, LIGHTGBM = "DAMVI", "best single", "best single by F1", "lightgbm"
COMBINERS = ("uniform vote", "greedy AP", "greedy F1", "stacking")
CHOSEN = ("C-bound, chosen by AP", "C-bound, chosen by F1")
LINEAR = ("linear", "balanced_linear", "rank_linear")
BALANCED = ("balanced_linear", "balanced_forest")
BOOSTED = ("hist_boosting", "lightgbm", "xgboost", "catboost")
MAKE_UPS: dict[str, Callable[[str], bool]] = {
    "DAMVI without linear models": lambda name: name not in LINEAR,
    "DAMVI without balanced models": lambda name: name not in BALANCED,
    "DAMVI of boosted trees only": lambda name: name in BOOSTED,
    "DAMVI without boosted trees": lambda name: name not in BOOSTED,
}
FINAL = ("auto", "platt", "beta", "isotonic")
"""Curves from the vote to a probability, by damvi.decision.calibrate_vote."""
RELIABILITY = ((DAMVI, "auto"), (LIGHTGBM, "isotonic"))
THEIRS = "isotonic, scikit-learn"
"""What CalibratedClassifierCV(method="isotonic", ensemble=False) does."""


class Setting(NamedTuple):
    """How C-bound weights are found."""

    calibration: str
    balance: float
    reweight: bool
    shrinkage: float
    fit_intercept: bool

    @property
    def name(self) -> str:
        if self == default_setting():
            return DAMVI
        emphasis = ", reweighted" if self.reweight else ""
        shrunk = f", shrinkage {self.shrinkage:g}" if self.shrinkage else ""
        bare = "" if self.fit_intercept else ", no constant"
        how = f"{self.calibration}, balance {self.balance:g}"
        return f"C-bound, {how}{emphasis}{shrunk}{bare}"

    @property
    def of_weights(self) -> Settings:
        return Settings(
            float(self.reweight), self.shrinkage, fit_intercept=self.fit_intercept
        )


def default_setting() -> Setting:
    """What ``DAMVIVotingClassifier()`` does."""
    model = DAMVIVotingClassifier()
    return Setting(
        model.calibration or "raw",
        model.balance,
        bool(model.reweight),
        model.shrinkage,
        model.fit_intercept,
    )


def settings() -> list[Setting]:
    """The default, and what differs from it in one or two respects."""
    usual = default_setting()
    grid = [
        usual._replace(calibration=calibration, balance=balance)
        for calibration in CALIBRATIONS
        for balance in BALANCES
    ]
    grid += [
        usual._replace(balance=balance, shrinkage=shrinkage, reweight=reweight)
        for balance in (0.0, usual.balance)
        for shrinkage in SHRINKAGES
        for reweight in (False, True)
    ]
    grid += [
        usual._replace(fit_intercept=False, shrinkage=shrinkage)
        for shrinkage in (0.001, usual.shrinkage)
    ]
    return list(dict.fromkeys([usual, *grid]))


def contender_names(voters: Sequence[str]) -> list[str]:
    """All contenders of a pool, in the order of the report."""
    return [
        *voters,
        BEST,
        BEST_F1,
        *COMBINERS,
        *(f"{name}, calibrated" for name in COMBINERS),
        *(setting.name for setting in settings()),
        *CHOSEN,
        *MAKE_UPS,
    ]


@dataclass(frozen=True, eq=False)
class Pool:
    """The votes of a pool: out of fold on the training rows, and on the test rows."""

    names: tuple[str, ...]
    unseen: Array
    test: Array
    targets: Array
    folds: Array

    def take(self, wanted: Callable[[str], bool]) -> Pool:
        columns = [k for k, name in enumerate(self.names) if wanted(name)]
        return replace(
            self,
            names=tuple(self.names[k] for k in columns),
            unseen=np.asfortranarray(self.unseen[:, columns]),
            test=np.asfortranarray(self.test[:, columns]),
        )

    def class_weight(self, balance: float) -> Array:
        """What a row of each class counts for: a positive, so many negatives."""
        negatives, positives = np.bincount(self.targets, minlength=2)
        return np.array([1.0, float(negatives / positives) ** balance])

    def calibrated(self, method: Any, balance: float = 0.0) -> Pool:
        """Each voter's votes calibrated, fold by fold, as DAMVI does."""
        if method == "raw":
            return self
        weight = self.class_weight(balance)
        unseen, curves = calibrate_votes(
            self.unseen,
            self.targets,
            self.folds,
            method=method,
            sample_weight=(weight / weight.max())[self.targets],
        )
        test = [curve(self.test[:, k]) for k, curve in enumerate(curves)]
        return replace(self, unseen=unseen, test=np.asfortranarray(np.stack(test, axis=1)))


class Vote(NamedTuple):
    """A combined vote on the training rows, honest, and on the test rows.

    ``whole`` is the vote on the training rows by the weights of the test rows, where these
    differ from fold to fold: its voters have not seen the row they judge, its weights have.
    """

    unseen: Array
    test: Array
    weights: Array | None = None
    note: str = ""
    whole: Array | None = None


def ranking_counts(score: Array, positive: Array) -> tuple[Array, Array]:
    """For each positive, how many positives and how many rows score at least as high."""
    own = np.sort(score[positive])
    found = len(own) - np.searchsorted(own, own, side="left")
    flagged = len(score) - np.searchsorted(np.sort(score), own, side="left")
    return found, flagged


def average_precision(score: Array, positive: Array) -> float:
    found, flagged = ranking_counts(score, positive)
    return float(np.mean(found / flagged))


def best_f1(score: Array, positive: Array) -> float:
    found, flagged = ranking_counts(score, positive)
    return float(np.max(2 * found / (len(found) + flagged)))


def crossfit_f1(vote: Array, targets: Array, folds: Array) -> float:
    """F1 where each fold is cut at the threshold that is best for the others."""
    flagged = np.zeros(len(vote), dtype=bool)
    for fold in np.unique(folds):
        here = folds == fold
        flagged[here] = vote[here] > tune_threshold(
            vote[~here], targets[~here], "f1", smooth=True
        )
    return float(f1_score(targets, flagged, zero_division=0))


def greedy(metric: Callable[[Array, Array], float], votes: Array, positive: Array) -> Array:
    """Caruana's ensemble selection, with replacement; the best of its ensembles."""
    n, n_voters = votes.shape
    total, counts = np.zeros(n), np.zeros(n_voters)
    best, weights = -np.inf, counts
    for _ in range(ROUNDS):
        scores = [metric(total + votes[:, k], positive) for k in range(n_voters)]
        chosen = int(np.argmax(scores))
        total += votes[:, chosen]
        counts[chosen] += 1
        if scores[chosen] > best:
            best, weights = scores[chosen], counts / counts.sum()
    return weights


def combine_linearly(pool: Pool, fit: Callable[[Array, Array], Array]) -> Vote:
    """A weighted vote whose weights are learned by ``fit``, cross-fitted."""
    positive, votes = pool.targets == 1, pool.unseen.astype(np.float64)
    unseen = np.empty(len(votes))
    for fold in np.unique(pool.folds):
        here = pool.folds == fold
        unseen[here] = votes[here] @ fit(votes[~here], positive[~here])
    weights = fit(votes, positive)
    test = pool.test.astype(np.float64) @ weights
    return Vote(unseen, test, weights, whole=votes @ weights)


def uniform(votes: Array, positive: Array) -> Array:
    return np.full(votes.shape[1], 1 / votes.shape[1])


def stack(pool: Pool) -> Vote:
    """Logistic regression on the voters' log-odds, cross-fitted."""
    features, unseen = log_odds(pool.unseen), np.empty(len(pool.targets))

    def fitted(rows: Array) -> LogisticRegression:
        return LogisticRegression(max_iter=2000).fit(features[rows], pool.targets[rows])

    for fold in np.unique(pool.folds):
        here = pool.folds == fold
        unseen[here] = fitted(~here).decision_function(features[here])
    whole = fitted(np.ones(len(features), dtype=bool))
    test = whole.decision_function(log_odds(pool.test))
    seen = whole.decision_function(features)
    unseen, test, seen = (np.tanh(one / 2) for one in (unseen, test, seen))
    return Vote(unseen, test, whole.coef_[0], whole=seen)


def weigh_by_c_bound(votes: Votes, test: Array, settings: Settings, note: str = "") -> Vote:
    moments = settings.moments_by_fold(votes)
    found = keep_better_vote(minimize_c_bound(votes, moments, settings, n_jobs=1))
    whole, vote = (
        np.clip(some.astype(np.float64) @ found.weights, -1, 1)
        for some in (votes.votes, test)
    )
    return Vote(found.out_of_sample_vote, vote, found.weights, note, whole)


def choose_by(metric: str, votes: Votes, test: Array) -> Vote:
    """As ``DAMVIVotingClassifier.choose`` does, by which ``reweigh`` then goes."""
    usual = default_setting().of_weights
    choice = choose_settings(votes, usual, metric, shrinkage=SHRINKAGES, n_jobs=1)
    chosen = choice.chosen
    note = f"reweight {chosen.reweight:g}, shrinkage {chosen.shrinkage:g}"
    return weigh_by_c_bound(votes, test, chosen, note)


def votes_of(pool: Pool, balance: float) -> Votes:
    return Votes(
        np.asfortranarray(pool.unseen),
        pool.targets,
        pool.folds,
        class_weight=pool.class_weight(balance),
    )


def score(vote: Vote, targets: Array, truth: Array) -> dict[str, Any]:
    """The threshold and the curve by the honest vote; what they give on the test rows."""
    threshold = tune_threshold(vote.unseen, targets, "f1", smooth=True)
    flagged = vote.test > threshold
    chance = calibrate_vote(vote.unseen, targets)(vote.test)
    weights = {} if vote.weights is None else {"weights": vote.weights.round(4).tolist()}
    whole = vote.unseen if vote.whole is None else vote.whole
    flagged_by_whole = vote.test > tune_threshold(whole, targets, "f1", smooth=True)
    return {
        "ap": float(average_precision_score(truth, vote.test)),
        "f1": float(f1_score(truth, flagged, zero_division=0)),
        "f1_whole": float(f1_score(truth, flagged_by_whole, zero_division=0)),
        "balanced_accuracy": float(balanced_accuracy_score(truth, flagged)),
        "mcc": float(matthews_corrcoef(truth, flagged)),
        "brier": float(brier_score_loss(truth, chance)),
        "log_loss": float(log_loss(truth, chance, labels=[0, 1])),
        "threshold": threshold,
        "out_of_fold_ap": average_precision(vote.unseen, targets == 1),
        **weights,
        **({"note": vote.note} if vote.note else {}),
    }


def probabilities(vote: Vote, targets: Array) -> dict[str, Array]:
    """The test rows' probabilities by each final curve, learned on the honest vote."""
    chances: dict[str, Array] = {
        method: calibrate_vote(vote.unseen, targets, method=method)(vote.test)  # type: ignore[arg-type]
        for method in FINAL
    }
    steps = IsotonicRegression(out_of_bounds="clip")
    steps.fit((1 + vote.unseen) / 2, targets)
    chances[THEIRS] = steps.predict((1 + vote.test) / 2)
    return chances


def reliability(chance: Array, truth: Array) -> list[list[float]]:
    """Rows, sum of the probabilities, and positives, in bins of equally many rows."""
    order = np.argsort(chance, kind="stable")
    return [
        [len(rows), round(float(chance[rows].sum()), 6), int(truth[rows].sum())]
        for rows in np.array_split(order, N_BINS)
    ]


def calibration_scores(votes: dict[str, Vote], targets: Array, truth: Array) -> Any:
    """Brier score, log loss and reliability by voter and final curve."""
    found: dict[str, Any] = {}
    for name, vote in votes.items():
        found[name] = {}
        for method, chance in probabilities(vote, targets).items():
            found[name][method] = {
                "brier": float(brier_score_loss(truth, chance)),
                "log_loss": float(log_loss(truth, chance, labels=[0, 1])),
            }
            if (name, method) in RELIABILITY:
                found[name][method]["bins"] = reliability(chance, truth)
    return found


class Contest:
    """All contenders on one split, timed."""

    def __init__(self, pool: Pool, truth: Array) -> None:
        self.pool, self.truth = pool, truth
        self.votes: dict[str, Vote] = {}
        self.scores: dict[str, dict[str, Any]] = {}
        self._known_calibrated: dict[tuple[str, float], tuple[Pool, float]] = {}

    def enter(self, name: str, combine: Callable[[], Vote], before: float = 0.0) -> None:
        """Score a contender; ``before`` is CPU time that it shares with others."""
        start = time.process_time()
        self.votes[name] = combine()
        scores = score(self.votes[name], self.pool.targets, self.truth)
        scores["seconds"] = round(before + time.process_time() - start, 4)
        self.scores[name] = scores

    def run(self) -> dict[str, dict[str, Any]]:
        pool = self.pool
        for k, name in enumerate(pool.names):
            unseen, test = (votes[:, k].astype(np.float64) for votes in _both(pool))
            self.enter(name, partial(Vote, unseen, test))
        self._choose(BEST, BEST_F1, pool.names)

        plain = pool, 0.0
        start = time.process_time()
        calibrated = pool.calibrated("auto"), time.process_time() - start
        for ending, (own, before) in (("", plain), (", calibrated", calibrated)):
            ways: dict[str, Callable[[], Vote]] = {
                "uniform vote": partial(combine_linearly, own, uniform),
                "greedy AP": partial(
                    combine_linearly, own, partial(greedy, average_precision)
                ),
                "greedy F1": partial(combine_linearly, own, partial(greedy, best_f1)),
                "stacking": partial(stack, own),
            }
            for name in COMBINERS:
                self.enter(name + ending, ways[name], before)

        for setting in settings():
            own, before = self._calibrated(setting)
            votes = votes_of(own, setting.balance)
            weigh = partial(weigh_by_c_bound, votes, own.test, setting.of_weights)
            self.enter(setting.name, weigh, before)
        usual = default_setting()
        own, before = self._calibrated(usual)
        votes = votes_of(own, usual.balance)
        for name, metric in zip(CHOSEN, ("average_precision", "f1"), strict=True):
            self.enter(name, partial(choose_by, metric, votes, own.test), before)
        for name, wanted in MAKE_UPS.items():
            some = own.take(wanted)
            votes = votes_of(some, usual.balance)
            weigh = partial(weigh_by_c_bound, votes, some.test, usual.of_weights)
            self.enter(name, weigh, before)
        assert list(self.scores) == contender_names(pool.names)
        return self.scores

    def _calibrated(self, setting: Setting) -> tuple[Pool, float]:
        """The votes calibrated for a setting, once, and the CPU time that it took."""
        key = setting.calibration, setting.balance
        if key not in self._known_calibrated:
            start = time.process_time()
            self._known_calibrated[key] = (
                self.pool.calibrated(*key),
                time.process_time() - start,
            )
        return self._known_calibrated[key]

    def _choose(self, by_ap: str, by_f1: str, among: Sequence[str]) -> None:
        """The contender that is best on the honest votes of the training rows.

        It keeps its own vote, on which its threshold is tuned: to choose fold by fold
        would join votes of different scales.
        """
        pool, positive = self.pool, self.pool.targets == 1

        def choose(worth: Callable[[Array], float]) -> Vote:
            name = max(among, key=lambda name: worth(self.votes[name].unseen))
            return self.votes[name]._replace(note=name)

        before = sum(self.scores[name]["seconds"] for name in among)
        self.enter(by_ap, lambda: choose(lambda v: average_precision(v, positive)), before)
        self.enter(
            by_f1,
            lambda: choose(lambda v: crossfit_f1(v, pool.targets, pool.folds)),
            before,
        )

    def calibration(self) -> Any:
        """Line 2: probabilities of DAMVI's vote beside LightGBM's."""
        among = {n: self.votes[n] for n in (DAMVI, LIGHTGBM, BEST) if n in self.votes}
        return calibration_scores(among, self.pool.targets, self.truth)


def _both(pool: Pool) -> tuple[Array, Array]:
    return pool.unseen, pool.test
