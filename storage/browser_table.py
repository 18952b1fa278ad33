"""Columns as a Parquet file that a browser reads: doubles and texts, compressed by Snappy."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

GROUP = 100_000
"""Rows of a row group: a browser decodes one after another."""


def browser_parquet(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Return columns of equal length as a Parquet file; the same columns give the same bytes.

    Numbers become doubles, since JavaScript has no other numbers of 64 bits, so integers must be below 2^53.

    Args:
        columns: Numbers or texts, by name; a column may contain None.

    Example:
        >>> browser_parquet({"steps": [10, 100], "method": ["poisson.certified", None]})[:4]
        b'PAR1'
    """
    table = pa.table({name: pa.array(values, type=_type(values)) for name, values in columns.items()})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=GROUP, compression="snappy")
    return bytes(sink.getvalue())


def _type(values: Sequence[Any]) -> pa.DataType:
    first = next((value for value in values if value is not None), "")
    return pa.string() if isinstance(first, str) else pa.float64()
