"""``fit_table``: a prepared table, a pool, a model with its worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..classifier import DAMVIClassifier
from ..deciding import Decision
from ..evaluation.voters import voters_of_fit
from ..fingerprint import row_prints
from ..modelfile import Model, Training
from ..voters import strong_pool
from .budget import within
from .metrics import Metric
from .preparing import Prepared
from .worth import Worth, judge


def fit_table(
    table: Prepared,
    metric: Metric,
    *,
    pool: str = "strong",
    time_limit: float | None = None,
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
    positive = table.positive
    estimator, dropped = _choose(table, pool, time_limit, seed, n_jobs, say)
    if estimator is None and table.groups is not None:
        raise ValueError(
            "groups need the strong pool: trees are judged on rows outside their samples, "
            "which other rows of a group may be in; leave out --pool trees, or --group"
        )
    classifier = DAMVIClassifier(
        estimator,
        # Very rare positives must reach every tree.
        stratified=estimator is None,
        threshold=metric.threshold,
        pos_label=True,
        n_jobs=n_jobs,
        random_state=seed,
        verbose=int(verbose),
    )
    together = {} if table.groups is None else {"groups": table.groups}
    classifier.fit(table.X, positive, **together)
    vote = classifier.oob_decision_function_ + classifier.threshold_
    # Users of a table are promised a probability, from trees too.
    decision = classifier._decision
    classifier._decision = Decision.make(decision.weighing, decision.aim, calibrates=True)
    worth = judge(classifier, table.X, positive, vote, metric, seed)
    scores = {
        "rows": len(positive),
        "positives": int(positive.sum()),
        "metric": metric.name,
        "cost": None if metric.cost is None else list(metric.cost),
        "threshold": float(classifier.threshold_),
        "tuning": None if classifier.tuning_ is None else classifier.tuning_.as_dict(),
        **worth.as_dict(),
        # For the report: the votes themselves are not kept.
        "voters": voters_of_fit(classifier),
    }
    return (
        Model(
            classifier=classifier,
            schema=table.schema,
            target=table.target,
            training=Training(row_prints(table.X, positive), vote, positive),
            scores=scores,
            made={
                **(made or {}),
                "seed": seed,
                "pool": "trees" if estimator is None else "strong",
                "left_out": dropped,
            },
        ),
        worth,
    )


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
    chosen, dropped = within(
        named, table.X, table.positive, time_limit, n_jobs=n_jobs, seed=seed
    )
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
