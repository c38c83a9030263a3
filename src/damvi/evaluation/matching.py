"""Rows of a table that are known from the fit, by their prints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Prints = NDArray[np.uint64]


def places_of(
    prints: Prints, values: Prints, known: Prints, known_values: Prints
) -> NDArray[np.intp]:
    """For each row its place among the known ones; -1 for none.

    ``prints`` tell rows with other values or another label apart, ``values`` only the
    first. Of rows with the same values and label, the first goes with the first of the
    fit, and so on. A row with the values of a known one, but another label, or once too
    often, goes with the first: the model has seen these values, so its own vote would
    flatter.

    Examples
    --------
    >>> import numpy as np
    >>> known = np.array([5, 7, 5], np.uint64)
    >>> asked = np.array([5, 5, 5, 9], np.uint64)
    >>> places_of(asked, asked, known, known).tolist()
    [0, 2, 0, -1]
    """
    place = _match_in_turn(prints, known)
    left = np.flatnonzero(place < 0)
    place[left] = _match_in_turn(values[left], known_values)
    left = np.flatnonzero(place < 0)
    place[left] = _match_first(values[left], known_values)
    return place


def _match_in_turn(prints: Prints, known: Prints) -> NDArray[np.intp]:
    """For each print its place among the known, the k-th with the k-th; -1 for none."""
    order = np.argsort(known, kind="stable")
    ranked = known[order]
    first = np.searchsorted(ranked, prints, side="left")
    count = np.searchsorted(ranked, prints, side="right") - first
    turn = _turns(prints)
    found = turn < count
    place = np.full(len(prints), -1)
    place[found] = order[(first + turn)[found]]
    return place


def _match_first(prints: Prints, known: Prints) -> NDArray[np.intp]:
    distinct, first = np.unique(known, return_index=True)
    at = np.searchsorted(distinct, prints)
    there = at < len(distinct)
    there[there] = distinct[at[there]] == prints[there]
    place = np.full(len(prints), -1)
    place[there] = first[at[there]]
    return place


def _turns(prints: Prints) -> NDArray[np.intp]:
    """How many of the same came before each."""
    order = np.argsort(prints, kind="stable")
    ranked = prints[order]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    lengths = np.diff(np.append(starts, len(ranked)))
    turns = np.empty(len(prints), dtype=np.intp)
    turns[order] = np.arange(len(prints)) - np.repeat(starts, lengths)
    return turns
