"""The only place that touches private names of other libraries."""

from __future__ import annotations

from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils._metadata_requests import _raise_for_params as refuse_params
from sklearn.utils._metadata_requests import _routing_enabled as routing_enabled
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

fit_context = _fit_context

__all__ = [
    "HasMethods",
    "Interval",
    "StrOptions",
    "fit_context",
    "refuse_params",
    "routing_enabled",
    "take_rows",
]
