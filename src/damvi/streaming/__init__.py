"""Votes on rows that arrive one batch after another: the voters stay, the weights follow.

The moments of votes are sums over rows, so each batch is added to them and forgotten.
"""

from .drift import Change, Drift
from .stream import VoteStream

__all__ = ["Change", "Drift", "VoteStream"]
