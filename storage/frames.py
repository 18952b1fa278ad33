"""Results of queries as frames of Arrow, pandas or polars, with exact types."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa

from privcore.errors import unknown
from privcore.extras import require
from privcore.registry import find_problem
from storage.errors import QueryError
from storage.views import quote, view_name

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_NAME = re.compile(r"\w[\w-]*(\.\w[\w-]*)?")


def query_of(query: str) -> str:
    """Return a query; the name of a view or of a problem is the query for all of its rows.

    Example:
        >>> query_of("allocation-epsilon"), query_of("brackets.poisson_delta"), query_of("select 1")
        ('from "allocation_epsilon"', 'from "brackets"."poisson_delta"', 'select 1')
    """
    if _NAME.fullmatch(query) is None:
        return query
    return "from " + ".".join(quote(view_name(part)) for part in query.split("."))


def converter(kind: str) -> Callable[[pa.Table], Any]:
    """Return the function that makes a frame of a table.

    Args:
        kind: `arrow`, `pandas` or `polars`; its package must be installed.

    Raises:
        UnknownNameError: The kind is unknown.
        MissingPackageError: The package is not installed.
    """
    if kind not in _CONVERTERS:
        raise unknown("kind of frame", kind, list(_CONVERTERS))
    if kind != "arrow":
        require(kind, f"A frame of {kind}")
    return _CONVERTERS[kind]


def _as_pandas(table: pa.Table) -> Any:
    """Return a frame whose columns keep the types of Arrow.

    Those of numpy have no null: integers with a null would become floats, and lose their last digits.
    """
    import pandas as pd

    _check_names(table)
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def _as_polars(table: pa.Table) -> Any:
    import polars as pl

    _check_names(table)
    for field in table.schema:
        for kind in _types_in(field.type):
            if pa.types.is_interval(kind) or pa.types.is_union(kind):
                raise QueryError(f"Polars has no type for {kind} in {field.name}; cast it to varchar.")
    return pl.DataFrame(table)


def _check_names(table: pa.Table) -> None:
    if len(set(table.column_names)) < len(table.column_names):
        raise QueryError(f"Expected columns with different names, got {', '.join(table.column_names)}.")


def _types_in(kind: pa.DataType) -> Iterator[pa.DataType]:
    """Yield a type and the types within it."""
    yield kind
    for k in range(kind.num_fields):
        yield from _types_in(kind.field(k).type)


_CONVERTERS: Mapping[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table,
    "pandas": _as_pandas,
    "polars": _as_polars,
}


class Framed:
    """The methods of a store that give frames; they use its method `sql`."""

    def sql(self, query: str, *, limit_seconds: float = 60.0) -> pa.Table:
        """Return the result of one SELECT."""
        raise NotImplementedError

    @overload
    def frame(self, query: str, kind: Literal["arrow"] = ..., *, limit_seconds: float = ...) -> pa.Table: ...

    @overload
    def frame(self, query: str, kind: Literal["pandas"], *, limit_seconds: float = ...) -> "pd.DataFrame": ...

    @overload
    def frame(self, query: str, kind: Literal["polars"], *, limit_seconds: float = ...) -> "pl.DataFrame": ...

    def frame(self, query: str, kind: str = "arrow", *, limit_seconds: float = 60.0) -> Any:
        """Return the result of one SELECT, or all rows of a view, as a frame with exact types.

        Args:
            query: As for `sql`; or the name of a view, such as `best`, or of a problem, whose stored points
                are the rows.
            kind: `arrow`, `pandas` or `polars`. The columns of a frame of pandas have Arrow's types
                (`pandas.ArrowDtype`), which keep nulls, decimals and large integers as they are.
            limit_seconds: Time limit of the query in seconds.

        Raises:
            UnknownNameError: The kind is unknown.
            MissingPackageError: The package of this kind is not installed.
            QueryError: The query is not one valid SELECT, or the kind lacks the type of a column.
            LimitError: The query took too long, needed too much memory, or returned too many bytes.
            StoreError: A part is missing, damaged or foreign; the sentence names it.
        """
        convert = converter(kind)
        return convert(self.sql(query_of(query), limit_seconds=limit_seconds))

    @overload
    def best(self, problem: str, kind: Literal["arrow"] = ..., *, limit_seconds: float = ...) -> pa.Table: ...

    @overload
    def best(
        self, problem: str, kind: Literal["pandas"], *, limit_seconds: float = ...
    ) -> "pd.DataFrame": ...

    @overload
    def best(
        self, problem: str, kind: Literal["polars"], *, limit_seconds: float = ...
    ) -> "pl.DataFrame": ...

    def best(self, problem: str, kind: str = "arrow", *, limit_seconds: float = 60.0) -> Any:
        """Return the best rigorous brackets of one problem, with the fields of this problem only.

        Args:
            problem: Name of the problem, such as `allocation-epsilon`.
            kind: As for `frame`.
            limit_seconds: Time limit of the query in seconds.

        Returns:
            The rows of the view `brackets.<problem>`: the truth of each is proved to be at least `lower` and
            at most `upper`. Without stored brackets, it has no rows, but all columns.

        Raises:
            UnknownNameError: The problem or the kind is unknown.
            MissingPackageError: The package of this kind is not installed.
            LimitError: The query took too long, needed too much memory, or returned too many bytes.
            StoreError: A part is missing, damaged or foreign; the sentence names it.
        """
        convert = converter(kind)
        try:
            rows = self.sql(f"from brackets.{quote(view_name(problem))}", limit_seconds=limit_seconds)
        except QueryError:
            find_problem(problem)
            raise
        return convert(rows)
