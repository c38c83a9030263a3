"""Models with a guarantee: rows set aside for it, and the threshold they give.

These rows are not used for training, weighting or calibration. ``fit`` sets some aside
before it looks at the others, or new rows are given to a model later. The words of a
guarantee say what it assumes.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..decision import Guarantee, decide, guarantee, promising_cuts
from ..decision.guarantees import Rate
from ..evaluation import FittedVote, Judged, measure
from ..hashing import thinned
from ..io import ModelParts
from ..tables import label_texts
from .table import Prepared

if TYPE_CHECKING:
    import pandas as pd

Mask = NDArray[np.bool_]

GUARANTEE = "guarantee"
"""The key of the guarantee in a model's scores."""
NEIGHBOURS = (
    "Rows are treated as independent: if rows close in time are similar, as in a campaign "
    "or an outage, the confidence is lower than stated."
)
ONLY_FOR_TWO = "guarantees are", "name the positive class with --positive"


def set_aside(
    frame: pd.DataFrame, table: Prepared, rate: Rate, size: float, seed: int
) -> Mask:
    """Choose the rows of a frame to set aside for a guarantee.

    These are the latest ones if rows are ordered in time, whole groups (the latest, if in
    time) if there are groups, or else random ones. Random rows are stratified by class,
    except for a precision, which depends on the class rates.
    """
    table.target.require_two(*ONLY_FOR_TWO)
    if not 0 < size < 1:
        raise ValueError(
            f"guarantee_size={size!r} must be between 0 and 1: the share of rows to set "
            f"aside for the guarantee"
        )
    n, rng = len(table.y), np.random.RandomState([seed, 29])
    if table.groups is not None or table.times is not None:
        units = np.arange(n) if table.groups is None else table.groups
        codes = np.unique(units, return_inverse=True)[1].reshape(-1)
        order = rng.permutation(codes.max() + 1).astype(np.float64)
        if table.times is not None:  # groups that start at the same time stay together
            moments = np.unique(table.times, return_inverse=True)[1].reshape(-1)
            order = np.full(codes.max() + 1, np.inf)
            np.minimum.at(order, codes, moments)
        first = order[codes]
        taken = first >= np.quantile(first, 1 - size, method="inverted_cdf")
        if taken.all():
            taken = first > first.min()
    else:
        drawn = rng.random_sample(n)
        taken = drawn < size
        if rate != "precision":
            for c in np.unique(table.y):
                own = np.flatnonzero(table.y == c)
                ranks = np.argsort(np.argsort(drawn[own]))
                taken[own] = ranks < round(size * len(own))
    for c, name in enumerate(("negative", "positive")):
        if taken[table.y == c].all():
            raise ValueError(
                f"all {name} rows would be set aside for the guarantee, with none left to "
                f"train on; use a smaller guarantee_size, or give new rows to "
                f"Model.guarantee later"
            )
    aside = np.zeros(len(frame), np.bool_)
    aside[label_texts(frame[table.target.name]).notna().to_numpy()] = taken
    return aside


def basis_of_aside(aside: pd.DataFrame, table: Prepared) -> str:
    """What a guarantee from rows that were set aside assumes."""
    n, alike = f"{len(aside):,}", table.alike
    told = f"It holds for rows drawn like the {n} that were set aside"
    if table.times is not None:
        told = (
            f"It comes from the latest {n} rows by {alike['time']!r}, and assumes that "
            f"future rows are like these, which cannot be guaranteed"
        )
    if table.sample_weight is not None:
        told += ". Each row counts once, whatever its training weight"
    return f"{told}."


def promise(
    model: ModelParts,
    judged: Judged,
    rate: Rate,
    level: float,
    confidence: float,
    basis: str = "",
) -> Guarantee:
    """A guaranteed threshold from labelled rows; training rows are left out."""
    model.target.require_two(*ONLY_FOR_TWO)
    labels, groups = judged.labels, judged.groups
    assert labels is not None  # the column is there
    new = judged.has_vote & ~judged.of_fit
    n, known = int(new.sum()), int(judged.of_fit.sum())
    if not n:
        raise ValueError(
            f"all {len(judged):,} rows are training rows (or have the same values), but a "
            f"guarantee needs rows that the model has never seen; give new rows, or fit "
            f"with guarantee= to set some aside"
        )
    cuts = None
    if rate == "precision":
        cuts = promising_cuts(model.training.vote, model.training.labels, level, n)
    found = guarantee(
        judged.vote[new],
        labels[new],
        rate,
        level,
        confidence=confidence,
        cuts=cuts,
        groups=None if groups is None else groups[new],
    )
    if found.flags_all:  # no model needed for that
        return replace(found, threshold=None)
    told = [basis or f"It holds for rows drawn like the {n:,} it comes from."]
    if known:
        told.append(
            f"{known:,} training rows (or rows with the same values) were left out."
        )
    if groups is not None:
        told.append(
            "Each group counts once, by one row drawn at random, and it holds for new "
            "groups, weighted equally."
        )
    elif "time" in judged.alike:
        if not basis:
            told.append(
                f"The rows are ordered in time ({judged.alike['time']!r}): it assumes that "
                f"future rows are like these, which cannot be guaranteed."
            )
        told.append(NEIGHBOURS)
    hashes = None
    if judged.values is not None:
        hashes = judged.values[new] | labels[new].astype(np.uint64)
    return replace(found, basis=" ".join(told), hashes=hashes, of=votes_of(model))


def votes_of(model: ModelParts) -> bytes:
    """A hash of a model's votes on its training rows, to tell models apart."""
    vote = np.ascontiguousarray(model.training.vote, np.float64)
    return sha256(vote.tobytes()).digest()


def decide_by(model: ModelParts, promised: Guarantee) -> ModelParts:
    """The same model with the threshold of a guarantee.

    Its scores are measured again out of sample. Training rows played no part in this
    threshold, so it applies to all of them. These scores are estimates, not guarantees.
    """
    if not isinstance(promised, Guarantee):
        raise TypeError(f"expected a Guarantee from Model.guarantee, not {promised!r}")
    if promised.of is not None and promised.of != votes_of(model):
        raise ValueError(
            "the guarantee belongs to another model; get one from this model's guarantee()"
        )
    if promised.threshold is None:
        raise ValueError(f"the guarantee has no threshold: {promised.words}")
    fitted, training = FittedVote(model.classifier), model.training
    cut = promised.threshold
    if fitted.labels.flags_above(cut) != cut:  # the positive class wins ties
        cut = float(np.nextafter(cut, np.inf))
    classifier = copy(model.classifier)
    classifier.threshold_ = cut
    if promised.hashes is not None:  # they set the threshold, so they cannot certify it
        more = thinned(promised.hashes, fitted.remembers)
        classifier.row_hashes_ = np.sort(np.concatenate([classifier.row_hashes_, more]))
    classifier.decision_ = fitted.classifier.decision_.at(cut)
    there = ~np.isnan(training.vote)
    decided = decide(training.vote[there], cut, fitted.labels.target_order)
    chance = None if training.probability is None else training.probability[there]
    truth = training.labels[there].astype(np.intp)
    blocks = None if training.blocks is None else training.blocks[there]
    told: dict[str, Any] = {**promised.as_dict(), "threshold": cut}
    if len(np.unique(truth)) == 2:
        cost = tuple(model.scores.get("cost") or ()) or None
        judged = truth, training.vote[there], decided, chance
        figures = measure(*judged, cost=cost, blocks=blocks)
        told["figures"] = {name: one.as_dict() for name, one in figures.overall.items()}
    profile = model.profile
    return replace(
        model,
        classifier=classifier,
        training=replace(training, threshold=None),
        scores=model.scores | {"threshold": cut, "tuning": None, GUARANTEE: told},
        profile=None if profile is None else profile.with_decisions(decided, 2),
    )
