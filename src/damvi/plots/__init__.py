"""Pictures of the voters and of their vote, as matplotlib Displays.

As in scikit-learn, ``from_estimator(model, X, y)`` asks a fitted model, a pipeline or a
search; ``from_predictions(votes, y, weights)`` takes what is at hand; both draw, and
return an object with the numbers, ``ax_`` and ``figure_``, whose ``plot`` draws again.
Use rows that the model was not trained on: on its own rows any tree looks sure and right.

They need matplotlib: ``pip install 'damvi[report]'``.
"""

from .disagreement import DisagreementDisplay
from .kappa_error import KappaErrorDisplay
from .margins import MarginsDisplay
from .weights import WeightsDisplay

__all__ = [
    "DisagreementDisplay",
    "KappaErrorDisplay",
    "MarginsDisplay",
    "WeightsDisplay",
]
