"""What the footers of parquet files tell of a column without a reading of it."""

from __future__ import annotations

from ..outofcore import ParquetTable


def varies(table: ParquetTable, name: str) -> bool:
    """Whether a column has more than one value for certain; a gap is one too."""
    seen: set[object] = set()
    for footer in table.footers:
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            for place in range(group.num_columns):
                column = group.column(place)
                known = column.statistics if column.path_in_schema == name else None
                if known is None:
                    continue
                if known.has_null_count and known.null_count:
                    seen.add(None)
                if known.has_min_max:
                    seen |= {known.min, known.max}
                if len(seen) > 1:
                    return True
    return False
