"""Update a model's weights on a stream of labelled batches; the voters stay fixed.

The moments of the votes are sums over rows, so each batch is added and then forgotten.
"""

from .drift import Change, Drift
from .stream import VoteStream

__all__ = ["Change", "Drift", "VoteStream"]
