"""``fit_dataset``: a model of a parquet dataset that stays on disk, with its worth."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..classifier import DAMVIClassifier
from ..hashing import kept
from ..io import Model, Training
from .class_worth import judge_classes
from .encoded import EncodedTable
from .fitting import calibrated_vote, model_of
from .metrics import Metric
from .preparing import Prepared
from .worth import Worth, judge

ALONE = "No forest or LightGBM beside it: they would need all rows in memory."


def fit_dataset(
    table: Prepared,
    metric: Metric,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
    made: dict[str, Any] | None = None,
    client: Any = None,
) -> tuple[Model, Worth]:
    """Fit trees on a dataset block by block, and measure them on rows unseen by each.

    Parameters
    ----------
    table : Prepared
        See :func:`~damvi.modelling.prepare_dataset`.
    metric : Metric
    seed : int, default=0
    n_jobs : int, optional
    verbose : bool, default=False
        Show a progress bar for each pass.
    made : dict, optional
        What else is known about how the model came about.
    client : distributed.Client, optional
        Of the cluster that is to do the work.
    """
    if metric.many != table.is_many:
        raise ValueError(f"the metric {metric.name} does not go with these classes")
    encoded: EncodedTable = table.X
    classifier = DAMVIClassifier(
        bootstrap="poisson",
        stratified=True,  # very rare classes must reach every tree
        threshold=metric.threshold,
        pos_label=None if table.is_many else True,
        n_jobs=n_jobs,
        random_state=seed,
        verbose=int(verbose),
    )
    if client is None:
        classifier.fit(encoded, encoded.encoder.label)
        hashes = classifier.votes_.blocks.cache.hashes
        rows = kept(hashes, classifier.row_hash_step_)
        hashes = np.array(hashes[rows])
    else:
        from .on_cluster import fit_on_cluster

        rows, hashes = fit_on_cluster(classifier, encoded, client)
    vote = calibrated_vote(classifier)
    judged: Any = judge_classes if table.is_many else judge
    labels = table.y.astype(np.intp) if table.is_many else table.y
    worth: Worth = judged(classifier, None, labels, vote, metric, seed)
    worth.verdicts.append(ALONE)
    training = Training(hashes, vote[rows], table.y[rows])
    model = model_of(table, metric, classifier, training, worth)
    model.made.update({**(made or {}), "seed": seed, "pool": "trees"})
    return model, worth
