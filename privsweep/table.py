"""The result of a query, which a notebook shows as a table."""

from pathlib import Path
from typing import Any

from flows.answers.export import query_in, rows_of
from flows.answers.held import CertifiedEpsilon
from flows.answers.held import keep as kept
from flows.printing import as_text, exactly, html_table
from flows.spec.words import DEFAULT_STORE
from privsweep.words import in_python
from storage import open_store
from storage.export import converter
from storage.place.located import located
from storage.table.shipped import described, shipped_store, shipped_version

SHOWN = 50
"""Rows that `print` and a notebook show."""


class Table:
    """The result of a query; libraries that read Arrow take it as it is, such as `polars.DataFrame(table)`.

    Attributes:
        arrow: All rows, as a table of pyarrow.
        source: Origin of the rows in words.
    """

    def __init__(self, arrow: Any, source: str) -> None:
        self.arrow = arrow
        self.source = source

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows for other libraries."""
        return self.arrow.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.arrow.num_rows)

    def frame(self, kind: str = "pandas") -> Any:
        """Return the rows as a frame, as `Store.frame` does.

        Args:
            kind: `arrow`, `pandas` or `polars`.

        Raises:
            UnknownNameError: The kind is unknown.
            MissingPackageError: The package of this kind is not installed.
            QueryError: The kind lacks the type of a column.
        """
        return converter(kind)(self.arrow)

    def __repr__(self) -> str:
        """Return the first rows as text."""
        return as_text(
            self.arrow.column_names, [list(map(exactly, row)) for row in self._rows()], self._title
        )

    def _repr_html_(self) -> str:
        return html_table(self.arrow.column_names, self._rows(), title=self._title)

    def _rows(self) -> list[tuple[Any, ...]]:
        return rows_of(self.arrow.slice(0, SHOWN))

    @property
    def _title(self) -> str:
        first = f"the first {SHOWN} of " if len(self) > SHOWN else ""
        return f"{first}{len(self)} row{'s' * (len(self) != 1)} from {self.source}"


@in_python
def sql(
    query: str | Path,
    store: str | Path = DEFAULT_STORE,
    *,
    limit_seconds: float = 60.0,
    keep: bool = False,
    allow_degraded: bool = False,
) -> Table:
    """Return the result of one SELECT over a store, or over the shipped table if there is no store.

    Args:
        query: DuckDB SQL over the views of a store (docs/sql.md), or the path of a file with it;
            `certified_epsilon(...)` computes.
        store: Folder or address of the store.
        limit_seconds: Time limit of the query in seconds.
        keep: Whether to store the bounds that the query computes.
        allow_degraded: Whether to skip damaged parts of the store, with a warning for each.

    Raises:
        QueryError: The query is not one valid SELECT.
        LimitError: The query took too long, needed too much memory, or returned too many bytes.
        StoreError: The path is not a store, or a part of it is missing, damaged or foreign.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, open_store(f"{folder}/store", create=True):
        ...     "a&lt;b" in sql("select 'a<b' as word", f"{folder}/store")._repr_html_()
        True
    """
    query = query_in(query)
    missing = Path(store) == DEFAULT_STORE and located(store).is_empty()
    if missing and (shipped := shipped_store()) is not None:
        opened, source = shipped, f"the {described(shipped_version())}"
    else:
        opened, source = open_store(store, degraded=allow_degraded), f"the store {store}"
    with opened:
        opened.sql("select 1")  # builds the views if necessary, outside of the time limit
        certified = CertifiedEpsilon(opened, limit_seconds)
        arrow = opened.sql(query, limit_seconds=limit_seconds, functions=[certified.function])
        if keep:
            kept(opened, certified.answers.values())
    return Table(arrow, source)
