"""Labelled rows that arrive after the fit: other weights for the same voters, and drift."""

from .drift import Change, Drift
from .stream import VoteStream

__all__ = ["Change", "Drift", "VoteStream"]
