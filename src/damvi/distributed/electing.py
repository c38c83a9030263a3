"""Step 1 of DAMVI on a cluster: labels, bins, codes and voters, where the rows are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from numbers import Integral
from operator import add
from typing import Any, NamedTuple

import numpy as np
from distributed import Future
from numpy.typing import NDArray
from sklearn.base import clone

from ..blocks.ballots import BlockBallots
from ..blocks.coded import Plan
from ..blocks.electing import Elected
from ..blocks.survey import Survey, check_census
from ..census import Census
from ..enrolling import print_step
from ..fingerprint import Prints
from ..progress import progress_bar
from ..voters.trees.features import Categories, Features
from ..voters.trees.forest import Forest
from ..voters.trees.voters import TreeVoters
from . import work
from .cluster import Cluster
from .futures import FutureBlocks
from .tables import Table
from .work import Place

LOT_BYTES = 2**27
"""What the samples of voters that are grown by one task may take."""
LOTS_A_THREAD = 4
"""So that no thread waits for long for the last lot of another."""


class Rows(NamedTuple):
    """A table on the workers: what is yet to be read of it, and what is known.

    Attributes
    ----------
    parts : list of (Delayed, Future, Place)
        Of each partition with rows in it: the rows, their truth, where they are.
    survey : Survey
    plan : Plan
    """

    parts: list[Any]
    survey: Survey
    plan: Plan


def elect_on(cluster: Cluster, model: Any, table: Table) -> Elected:
    """Train the voters of ``model`` on a table, and have them vote where the rows are."""
    tree = clone(model._voter())
    tree._validate_params()
    categories, categorical = _categories(tree, table)
    names = None if table.frame is None else _names(table.frame.columns)
    rows = _count(cluster, model, table)
    features, prints = _find_bins(cluster, rows, categories, categorical)
    there = cluster.hand("features", features)
    coded = cluster.each_of_lazy(
        "codes",
        work.codes_of,
        rows.parts,
        plan=rows.plan,
        survey=rows.survey,
        features=there,
    )
    cluster.watch.wait(coded)
    plan = rows.plan
    del rows  # the labels as they were given are no longer needed
    grown = _grow(cluster, model, tree, plan, coded, there, table.n_features)
    forest: Forest = cluster.result(grown)
    blocks = FutureBlocks(cluster, coded, [(forest, grown)])
    voters = TreeVoters(tree, features, forest)
    ballots = BlockBallots(blocks, plan, forest)
    return Elected(plan.contest, voters, ballots, prints, names)


def _count(cluster: Cluster, model: Any, table: Table) -> Rows:
    """The labels of all partitions, and how many rows of which class each has."""
    numbers = range(len(table.X))
    given = zip(numbers, table.y, table.weights, strict=True)
    truth = cluster.each_of_lazy("labels", work.truth_of, given)
    surveys = cluster.each("survey", work.survey_of, truth)
    whole = cluster.total("add-surveys", partial(work.add_all, add), surveys)
    survey: Survey = cluster.result(whole)
    contest = survey.contest(model.pos_label)
    settings = {"survey": survey, "contest": contest}
    counts = cluster.each("census", work.census_of, truth, **settings)
    censuses: list[Census] = cluster.results("censuses", counts)
    census = sum(censuses[1:], start=censuses[0])
    check_census(contest, census, table.weights[0] is not None)
    plan = Plan(
        contest,
        census,
        model._new_seed(),
        model.max_samples,
        model.stratified,
        model._balance,
        model._way == "oob",
    )
    rows = [part.rows for part in censuses]
    ends = np.cumsum([np.zeros_like(rows[0]), *rows], axis=0)
    parts = [
        (table.X[number], truth[number], Place(number, int(before.sum()), before))
        for number, before in zip(numbers, ends[:-1], strict=True)
        if rows[number].any()
    ]
    return Rows(parts, survey, plan)


def _find_bins(
    cluster: Cluster,
    rows: Rows,
    categories: Categories | None,
    categorical: NDArray[np.bool_],
) -> tuple[Features, Prints]:
    glances = cluster.each_of_lazy(
        "sketch",
        work.glance_of,
        rows.parts,
        plan=rows.plan,
        survey=rows.survey,
        categories=categories,
        categorical=categorical,
        print_step=print_step(rows.plan.census.n_rows),
    )
    whole = cluster.total("merge-sketches", work.merge_glances, glances)
    del glances
    binning, prints = cluster.result(cluster.submit("bins", work.bins_of, whole))
    return Features(categories, binning), prints


def _grow(
    cluster: Cluster,
    model: Any,
    tree: Any,
    plan: Plan,
    coded: list[Future],
    features: Future,
    n_features: int,
) -> Future:
    """The forest, on the workers."""
    lots = _lots(plan, model.n_estimators, n_features, cluster.n_threads)
    grown = _grow_lots(cluster, tree, plan, coded, features, lots)
    if model.verbose:
        grown = progress_bar("Training voters")(grown, len(lots))
    forests = dict(grown)
    return cluster.submit(
        "join", work.join, *(forests[number] for number in sorted(forests))
    )


def _grow_lots(
    cluster: Cluster,
    tree: Any,
    plan: Plan,
    coded: list[Future],
    features: Future,
    lots: list[range],
) -> Iterator[tuple[int, Future]]:
    """Trees, a lot a task, as they are done; few at a time, since samples take room."""
    running: dict[int, Future] = {}
    for number, voters in enumerate(lots):
        samples = cluster.each("samples", work.samples_of, coded, plan=plan, voters=voters)
        running[number] = cluster.submit(
            "grow", work.grow_lot, samples, voters, tree, features, plan
        )
        del samples
        last = number == len(lots) - 1
        while running and (last or len(running) > cluster.n_threads):
            cluster.watch.wait([*running.values()], "FIRST_COMPLETED")
            for done in [number for number, future in running.items() if future.done()]:
                yield done, running.pop(done)


def _lots(plan: Plan, n_voters: int, n_features: int, n_threads: int) -> list[range]:
    """Voters that are grown together: a task each would be too many, for small samples."""
    n = plan.census.n_rows
    share = plan.max_samples
    n_draws = share if isinstance(share, Integral) else share * n
    room = LOT_BYTES / (min(n, n_draws) * (n_features + 2))
    size = max(1, min(int(room), n_voters // (LOTS_A_THREAD * n_threads)))
    return [range(k, min(k + size, n_voters)) for k in range(0, n_voters, size)]


def _categories(tree: Any, table: Table) -> tuple[Categories | None, NDArray[np.bool_]]:
    """The categories of each column, and which columns have any."""
    example = np.empty((0, table.n_features)) if table.frame is None else table.frame
    mask = tree.categorical_mask(example)
    if not tree.wants_frame(example):
        return None, mask
    categories = Categories.learn(example)
    return categories, mask | categories.mask


def _names(columns: Any) -> list[str] | None:
    """The columns' names, if they have any."""
    texts = [isinstance(name, str) for name in columns]
    if any(texts) and not all(texts):
        raise TypeError(
            "some names of columns are texts and others are not; make all of them texts, "
            "as in X.columns = [str(name) for name in X.columns]"
        )
    return list(columns) if all(texts) else None
