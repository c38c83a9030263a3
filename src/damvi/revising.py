"""What can be done with the votes of a fit: weights by other settings, fewer voters."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .ballots import Ballots
from .choosing import choose_rule
from .class_ballots import ClassBallots
from .contest import JOINT
from .decision import Decision
from .decision.decision import AVERAGE_PRECISION
from .enlisting import EnlistsUnlabelled
from .pruning import price
from .weighing import Rule, weigh

SHRINKAGES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1)
EMPHASES = (0.0, 0.5, 1.0)
ETAS = (0.0, 0.25, 0.5, 0.75, 0.95)


class RevisesWeights(EnlistsUnlabelled):
    """The part of :class:`~damvi.DAMVIClassifier` that weights the voters."""

    reweight: Any
    shrinkage: float | str
    solver: str
    eta_: float
    _ballots: Ballots | ClassBallots
    _decision: Decision

    def reweigh(self, **settings: Any) -> Self:
        """Weight the voters anew, by other settings, without training them again.

        Parameters
        ----------
        **settings
            Any of ``reweight``, ``shrinkage``, ``solver``, ``threshold`` and ``eta``; the
            others stay. The votes of the last ``fit`` are used, which a model that was
            saved and loaded no longer has.

        Returns
        -------
        self
        """
        known = {"reweight", "shrinkage", "solver", "threshold", "eta"}
        if not settings.keys() <= known:
            wrong = ", ".join(sorted(settings.keys() - known))
            raise TypeError(f"reweigh takes {', '.join(sorted(known))}, and not {wrong}")
        self._need_votes()
        before = {name: getattr(self, name) for name in settings} | {"eta_": self.eta_}
        rule = self._rule()
        try:
            self.set_params(**settings)  # type: ignore[attr-defined]
            self._validate_params()  # type: ignore[attr-defined]
            # What "auto" is for eta depends on the rest of the rule.
            other = "eta" in settings or self._rule() != rule
            self._weigh_and_decide(self._settle_eta() if other else None)
        except Exception:
            vars(self).update(before)  # as if nothing had been asked
            raise
        return self

    def choose(
        self,
        metric: Any = "auto",
        *,
        reweight: Iterable[float] = EMPHASES,
        shrinkage: Iterable[float] = SHRINKAGES,
    ) -> Self:
        """Choose the emphasis and the shrinkage by what counts for you, on unseen votes.

        All combinations are tried on the votes of the last ``fit``; no voter is trained
        again. ``choice_`` then tells what each was worth, and what the choice itself is
        worth on rows that had no part in it.

        Parameters
        ----------
        metric : default="auto"
            "average_precision", or what a threshold can be tuned for, such as "f1" or
            {"cost": (1, 50)}. "auto" is what the threshold is tuned for, and average
            precision if it is not tuned. With three or more classes "average_precision"
            or "macro_f1", means over the classes.
        reweight, shrinkage : iterable of float
            The values to try.

        Returns
        -------
        self
        """
        ballots = self._need_votes()
        if isinstance(metric, str) and metric == "auto":
            metric = self._decision.metric
        now = self._rule()
        rules = [
            now._replace(emphasis=emphasis, shrinkage=strength)
            for strength, emphasis in product(
                _read("shrinkage", shrinkage, below=1), _read("reweight", reweight)
            )
        ]
        choice, votes = choose_rule(ballots, rules, metric, self.n_jobs)
        self.reweight, self.shrinkage = choice.chosen.emphasis, choice.chosen.shrinkage
        self._weigh_and_decide(votes)
        self.choice_ = choice
        return self

    def prune(self, max_voters: int) -> Self:
        """Keep a few voters, those that the C-bound can spare least.

        The weights are fitted anew on those kept, along a path that drops one voter after
        the other. ``pruning_`` tells the price: C-bound, and average precision and F1 on
        rows that had no part in the choice, by which the threshold is tuned too. What
        is chosen or pruned after that starts from the voters that are left, and does not
        know that they were chosen: its figures flatter.

        Parameters
        ----------
        max_voters : int

        Returns
        -------
        self
        """
        ballots = self._need_votes()
        if not isinstance(max_voters, (int, np.integer)) or max_voters < 1:
            raise ValueError(f"max_voters={max_voters!r}; give a whole number from 1 on")
        if not ballots.at_hand:
            raise ValueError(
                "prune needs all votes at hand, and a table beyond memory has too many; "
                "fit fewer voters (n_estimators), or prune a model fitted on a sample"
            )
        weights, pruning, votes = price(
            ballots,
            self._rule(),
            int(max_voters),
            self.n_jobs,
            self._contest.tuned_for,
        )
        kept = np.flatnonzero(weights)
        self._voters, self._ballots = self._voters.take(kept), ballots.take(kept)
        self._fingerprint = "pruned"  # no fit can add to these
        self._weigh_and_decide(votes)
        self.pruning_ = pruning
        return self

    def _need_votes(self) -> Ballots | ClassBallots:
        check_is_fitted(self, "weights_")
        if not hasattr(self, "_ballots"):
            raise AttributeError(
                "the votes of the training rows are not saved with a model; fit it again"
            )
        return self._ballots

    def _rule(self) -> Rule:
        return Rule(
            emphasis=float(self._choice(self.reweight, True, False)),
            shrinkage=float(self._choice(self.shrinkage, 0.0, 0.001)),
            solver=self.solver,
            jointly=isinstance(self.threshold, str) and self.threshold == JOINT,
            eta=self.eta_,
        )

    def _settle_eta(self) -> Any:
        """How much unlabelled rows count: as told, or as labelled unseen rows speak for.

        Where it was chosen, the votes on unseen rows that know nothing of the choice.
        """
        self.eta_ = 0.0
        if getattr(self._ballots, "crowd", None) is None:
            return None
        if not isinstance(self.eta, str):
            self.eta_ = float(self.eta)
            return None
        rules = [self._rule()._replace(eta=eta) for eta in ETAS]
        choice, votes = choose_rule(self._ballots, rules, AVERAGE_PRECISION, self.n_jobs)
        self.eta_ = choice.chosen.eta
        return votes

    def _weigh_and_decide(self, unseen_vote: Any = None) -> Self:
        """Steps 2 to 4; ``unseen_vote`` knows nothing of what was chosen before them."""
        contest = self._contest
        aim = contest.aim(self._choice(self.threshold, "vote", contest.tuned_for))
        # 2 and 3. Lean on the positives that the plain vote gets wrong; weights that trade
        # accuracy for diversity as the C-bound says.
        rule = self._rule()
        weighing = getattr(getattr(self, "_decision", None), "weighing", None)
        if weighing is None or (weighing.ballots, weighing.rule) != (self._ballots, rule):
            weighing = weigh(self._ballots, rule, self.n_jobs)  # else it is known
        if unseen_vote is not None:
            weighing = weighing.known_by(unseen_vote)

        # 4. Where to cut the vote, by unseen rows.
        self._decision = contest.decide(weighing, aim, calibrates=self._is_pool)
        self.threshold_ = self._decision.threshold
        self.weights_ = weighing.weights
        self.c_bound_ = weighing.c_bound
        self.gibbs_risk_ = weighing.gibbs_risk
        self.disagreement_ = weighing.disagreement
        for stale in ("choice_", "pruning_"):
            vars(self).pop(stale, None)
        return self


def _read(name: str, values: Any, below: float = np.inf) -> list[float]:
    """The values to try, checked."""
    listed = [values] if isinstance(values, (int, float)) else list(values)
    for value in listed:
        if not (isinstance(value, (int, float, np.number)) and 0 <= value <= 1):
            raise ValueError(f"{name}={value!r} is not a number from 0 to 1")
        if value >= below:
            raise ValueError(f"{name}={value!r} must be below {below}")
    if not listed:
        raise ValueError(f"{name} has no value to try")
    return [float(value) for value in listed]
