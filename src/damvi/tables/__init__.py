"""Read files into typed tables, infer a schema, and encode columns for a model."""

from .checks import (
    is_number_column,
    leak_warnings,
    note_on_neighbours,
    notes_on,
    read_times,
    suspicions,
    time_order,
    time_values,
    too_good,
)
from .labels import (
    Target,
    TargetOfMany,
    amount_warnings,
    binary,
    label_texts,
    listed,
    many,
    merge_labels,
    pick,
    read_classes,
    spelling_warnings,
    typed_labels,
    with_kind,
)
from .reading import SUFFIXES, Rows, check_carried, read_blocks, read_table
from .schema import Column, Schema
from .transformer import TableEncoder

__all__ = [
    "SUFFIXES",
    "Column",
    "Rows",
    "Schema",
    "TableEncoder",
    "Target",
    "TargetOfMany",
    "amount_warnings",
    "binary",
    "check_carried",
    "is_number_column",
    "label_texts",
    "leak_warnings",
    "listed",
    "many",
    "merge_labels",
    "note_on_neighbours",
    "notes_on",
    "pick",
    "read_blocks",
    "read_classes",
    "read_table",
    "read_times",
    "spelling_warnings",
    "suspicions",
    "time_order",
    "time_values",
    "too_good",
    "typed_labels",
    "with_kind",
]
