"""Imported rows: they are marked with the lookup table that they came from.

The mark is the key `imported` in the column `versions`, so earlier releases read imported rows, and `compact`
and `gc` keep the mark.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping

import duckdb
import pyarrow as pa

from privcore.parameter import Value
from privcore.problem import Problem
from storage.errors import StoreError
from storage.marks import MARK
from storage.schema import object_in
from storage.views import quote, view_name

KEY = "imported"


def marked(rows: pa.Table, source: str) -> pa.Table:
    """Return rows with the mark of an import.

    Args:
        rows: Rows with the columns of a problem.
        source: Version of the lookup table.

    Raises:
        StoreError: The versions of a row are not a JSON object of texts, so a mark below it could hide ours.
    """
    import pyarrow.compute as pc  # slow to import, and not needed by lookups

    column = rows["versions"].cast(pa.string())
    new = {}
    for text in pc.unique(column).to_pylist():
        versions = object_in(text)
        # Earlier releases also find the mark after a quotation mark within a text.
        if not all(
            isinstance(each, str) and not set(name + each) & set('"\\') for name, each in versions.items()
        ):
            raise StoreError(f"expected versions of packages, got {text[:60]}")
        new[text] = json.dumps({**versions, KEY: source}, sort_keys=True, separators=(",", ":"))
    place, field = rows.column_names.index("versions"), rows.schema.field("versions")
    values = pa.array([new[text] for text in column.to_pylist()]).cast(field.type)
    return rows.set_column(place, field, values)


def source_of(versions: str) -> str:
    """Return the lookup table of a row from its column `versions`, at most 100 characters, or ""."""
    found = re.search(MARK, versions or "")
    return found[1] if found else ""


def sources_of(versions: pa.ChunkedArray) -> dict[str, int]:
    """Return the number of imported rows by their lookup table, from the column `versions`."""
    found = Counter[str]()
    for each in versions.cast(pa.string()).value_counts().to_pylist():
        found[source_of(each["values"])] += each["counts"]
    del found[""]
    return dict(found)


def imported_ends(
    connection: duckdb.DuckDBPyConnection,
    problem: Problem,
    ends: Iterable[tuple[str, Mapping[str, Value] | None]],
) -> list[tuple[str, str, str]]:
    """Return the side, point id and lookup table of each stored end that was imported.

    Args:
        connection: Connection to a snapshot.
        problem: A problem of the class.
        ends: Side, `lower` or `upper`, and fields of the stored problem of each end.
    """
    if not connection.execute("select 1 from imported limit 1").fetchall():
        return []
    found = []
    for end, fields in ends:
        if fields is not None:
            same = " and ".join(f"{quote(name)} = ?" for name in fields)
            query = f"""
                select point_id, source from imported where point_id in
                    (select {end}_point from brackets."{view_name(problem.name)}" where {same})
            """
            if row := connection.execute(query, list(fields.values())).fetchone():
                found.append((end, str(row[0]), str(row[1])))
    return found
