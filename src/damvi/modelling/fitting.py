"""``fit_table``: a prepared table, a pool, a model with its worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..classifier import DAMVIClassifier
from ..evaluation import voters_of_fit
from ..hashing import row_hashes
from ..io import Model, Training
from ..unlabeled import Unlabeled
from ..voters import strong_pool
from ..voting import DAMVIVotingClassifier
from .budget import within
from .class_worth import judge_classes
from .metrics import Metric
from .preparing import Prepared
from .unlabelled import refuse_weight, say_use, summary_of, weight_of
from .worth import Worth, judge


def fit_table(
    table: Prepared,
    metric: Metric,
    *,
    pool: str = "strong",
    time_limit: float | None = None,
    unlabeled: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
    made: dict[str, Any] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> tuple[Model, Worth]:
    """Fit a model on a table and measure it out of sample, in one training.

    Parameters
    ----------
    table : Prepared
        See :func:`~damvi.modelling.prepare`.
    metric : Metric
        See :func:`~damvi.modelling.parse_metric`.
    pool : {"strong", "trees"}, default="strong"
        Different strong models, or the paper's trees: a fraction of the time.
    time_limit : float, optional
        Seconds for the training. Voters of the strong pool that do not fit are left out,
        and if next to none does, the trees are taken.
    unlabeled : float, optional
        How much the voters' disagreement on rows without a label counts, if there are
        any; by default they are left alone.
    seed : int, default=0
    n_jobs : int, optional
    verbose : bool, default=False
        Show a progress bar.
    made : dict, optional
        What else is known about how the model came about.
    say : callable
        Hears what was decided on the way.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from damvi.modelling import fit_table, parse_metric, prepare
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    >>> frame["bad"] = frame["a"] + 0.3 * rng.normal(size=400) > 1.2
    >>> model, worth = fit_table(prepare(frame, "bad"), parse_metric("f1"), pool="trees")
    >>> model.target.positive, worth.figures["DAMVI"]["ap"].value > 0.5
    ('True', True)
    """
    refuse_weight(table, unlabeled)
    if metric.many != table.is_many:
        raise ValueError(f"the metric {metric.name} does not go with these classes")
    estimators, dropped = _choose(table, pool, time_limit, seed, n_jobs, say)
    if estimators is None and table.groups is not None:
        raise ValueError(
            "groups need the strong pool: trees are judged on rows outside their samples, "
            "which other rows of a group may be in; leave out --pool trees, or --group"
        )
    common: dict[str, Any] = {
        "threshold": metric.threshold,
        "unlabeled_weight": weight_of(table, unlabeled),
        "pos_label": None if table.is_many else True,
        "n_jobs": n_jobs,
        "random_state": seed,
        "verbose": int(verbose),
    }
    classifier: Any
    if estimators is None:  # very rare classes must reach every tree
        classifier = DAMVIClassifier(stratified=True, **common)
    else:
        classifier = DAMVIVotingClassifier(estimators, **common)
    said = say_use(table, unlabeled, classifier.unlabeled_weight)
    if said:
        say(said)
    more: dict[str, Any] = {} if table.groups is None else {"groups": table.groups}
    if classifier.unlabeled_weight:
        more["X_unlabeled"] = Unlabeled(table.unlabelled)
    classifier.fit(table.X, table.y, **more)
    vote = calibrated_vote(classifier)
    judged = judge_classes if table.is_many else judge
    worth = judged(classifier, table.X, table.y, vote, metric, seed)
    labels = table.y.astype(np.uint8) if table.is_many else table.y
    training = Training(row_hashes(table.X, table.y), vote, labels)
    model = model_of(table, metric, classifier, training, worth)
    model.scores.update(summary_of(table, classifier.unlabeled_weight))
    kind = "trees" if estimators is None else "strong"
    model.made.update(
        {**(made or {}), "seed": seed, "pool": kind, "left_out": dropped},
    )
    return model, worth


def calibrated_vote(classifier: Any) -> NDArray[np.float64]:
    """The vote on each row by voters and weights that do not know it."""
    # Users of a table are promised a probability, from trees too.
    classifier.decision_ = replace(classifier.decision_, calibrates=True)
    vote: NDArray[np.float64] = classifier.decision_.out_of_sample_vote
    return vote


def model_of(
    table: Prepared,
    metric: Metric,
    classifier: Any,
    training: Training,
    worth: Worth,
) -> Model:
    """The whole model, with what is known of its worth."""
    scores = {
        "rows": len(table.y),
        **_counts(table),
        "metric": metric.name,
        "cost": None if metric.cost is None else list(metric.cost),
        "threshold": np.asarray(classifier.threshold_).tolist(),
        "tuning": None if classifier.tuning_ is None else classifier.tuning_.as_dict(),
        **worth.as_dict(),
        # For the report: the votes themselves are not kept.
        "voters": voters_of_fit(classifier),
    }
    return Model(classifier, table.schema, table.target, training, scores, {})


def _counts(table: Prepared) -> dict[str, Any]:
    """How many rows there are of what."""
    if not table.is_many:
        return {"positives": int(table.y.sum())}
    counts = np.bincount(table.y, minlength=len(table.target.classes))
    return {"classes": dict(zip(table.target.classes, counts.tolist(), strict=True))}


def _choose(
    table: Prepared,
    pool: str,
    time_limit: float | None,
    seed: int,
    n_jobs: int | None,
    say: Callable[[str], None],
) -> tuple[Any, list[str]]:
    """What to give to the classifier as voters, and the names of those left out."""
    if pool == "trees":
        return None, []
    if time_limit is None:
        return "strong", []
    named = strong_pool(seed)
    chosen, dropped = within(named, table.X, table.y, time_limit, n_jobs=n_jobs, seed=seed)
    if not dropped:
        return "strong", []
    if len(chosen) < 2:
        say(
            f"Time limit of {time_limit:g} s: too short for the strong pool, so the "
            f"trees are taken. Figures may be lower."
        )
        return None, [name for name, _ in named]
    say(
        f"Time limit of {time_limit:g} s: left out {', '.join(dropped)} as too slow. "
        f"Figures may be lower."
    )
    return chosen, dropped
