"""A model that decides by a promise: rows set aside for it, and a threshold from these.

The rows of a promise train, weigh and calibrate nothing. ``fit`` sets some aside before it
looks at the others, or a table of new rows is given to a model later. What the promise
rests on is said in words beside it.
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
"""Of the scores of a model: what it promises."""
NEIGHBOURS = (
    "Each row counts on its own: where neighbours in time are alike, as rows of one "
    "campaign or one fault are, the confidence is lower than stated."
)
ONLY_FOR_TWO = "guarantees are", "name the one to find with --positive"


def set_aside(
    frame: pd.DataFrame, table: Prepared, rate: Rate, size: float, seed: int
) -> Mask:
    """Which rows of a frame a promise is to come from; ``table`` is what is known of all.

    In time the last, of groups whole ones (in time those that came last), and otherwise
    some at random. These have their share of each class, but not for a precision: how
    frequent the classes are is then part of what the rows must tell.
    """
    table.target.require_two(*ONLY_FOR_TWO)
    if not 0 < size < 1:
        raise ValueError(
            f"guarantee_size={size!r} is the share of the rows that a guarantee comes "
            f"from; give a number between 0 and 1"
        )
    n, rng = len(table.y), np.random.RandomState([seed, 29])
    if table.groups is not None or table.times is not None:
        units = np.arange(n) if table.groups is None else table.groups
        codes = np.unique(units, return_inverse=True)[1].reshape(-1)
        order = rng.permutation(codes.max() + 1).astype(np.float64)
        if table.times is not None:  # what begins at the same time stays together
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
                f"all {name} rows would be set aside for the guarantee, and none is left "
                f"to learn from; give a smaller guarantee_size, or a table to "
                f"Model.guarantee later"
            )
    aside = np.zeros(len(frame), np.bool_)
    aside[label_texts(frame[table.target.name]).notna().to_numpy()] = taken
    return aside


def basis_of_aside(aside: pd.DataFrame, table: Prepared) -> str:
    """What a promise from rows that were set aside rests on."""
    n, alike = f"{len(aside):,}", table.alike
    told = f"It is for rows drawn like the {n} that were set aside"
    if table.times is not None:
        told = (
            f"It comes from the last {n} rows in time ({alike['time']!r}), and rests on "
            f"rows to come being like these, which nothing here can promise"
        )
    if table.sample_weight is not None:
        told += ". Each row counts once, whatever its weight in the training"
    return f"{told}."


def promise(
    model: ModelParts,
    judged: Judged,
    rate: Rate,
    level: float,
    confidence: float,
    basis: str = "",
) -> Guarantee:
    """A threshold for a model from rows with true answers; training rows are left out."""
    model.target.require_two(*ONLY_FOR_TWO)
    labels, groups = judged.labels, judged.groups
    assert labels is not None  # the column is there
    new = judged.has_vote & ~judged.of_fit
    n, known = int(new.sum()), int(judged.of_fit.sum())
    if not n:
        raise ValueError(
            f"all {len(judged):,} rows are training rows, or have the values of one, and a "
            f"guarantee comes from rows that the model has never seen; give others, or fit "
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
    if found.flags_all:  # which needs no model
        return replace(found, threshold=None)
    told = [basis or f"It is for rows drawn like the {n:,} that it comes from."]
    if known:
        told.append(
            f"{known:,} more are training rows, or have the values of one, and were left "
            f"out: it is for rows like the others."
        )
    if groups is not None:
        told.append(
            "Rows of a group are alike: each group counts once, by one row drawn at "
            "random, and it is for rows of new groups, each of which counts alike."
        )
    elif "time" in judged.alike:
        if not basis:
            told.append(
                f"They follow each other in time ({judged.alike['time']!r}): it rests on "
                f"rows to come being like these, which nothing here can promise."
            )
        told.append(NEIGHBOURS)
    hashes = None
    if judged.values is not None:
        hashes = judged.values[new] | labels[new].astype(np.uint64)
    return replace(found, basis=" ".join(told), hashes=hashes, of=votes_of(model))


def votes_of(model: ModelParts) -> bytes:
    """A model told from others by its votes on its training rows."""
    vote = np.ascontiguousarray(model.training.vote, np.float64)
    return sha256(vote.tobytes()).digest()


def decide_by(model: ModelParts, promised: Guarantee) -> ModelParts:
    """The same model with the threshold of a promise.

    What it gives is measured anew out of sample: training rows have no part in this
    threshold, so all of them are cut at it. These are estimates, and no promise; their
    intervals heed which rows are alike.
    """
    if not isinstance(promised, Guarantee):
        raise TypeError(f"a promise is what Model.guarantee gives, and not {promised!r}")
    if promised.of is not None and promised.of != votes_of(model):
        raise ValueError(
            "the promise is for the votes of another model, and not for this one's; "
            "ask this model for its guarantee"
        )
    if promised.threshold is None:
        raise ValueError(f"there is nothing to decide by: {promised.words}")
    fitted, training = FittedVote(model.classifier), model.training
    cut = promised.threshold
    if fitted.labels.flags_above(cut) != cut:  # the positive class wins ties
        cut = float(np.nextafter(cut, np.inf))
    classifier = copy(model.classifier)
    classifier.threshold_ = cut
    if promised.hashes is not None:  # they chose the threshold, and cannot certify it
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
