"""Facts about rows that a query may read without showing them: assumptions, imports, superseded versions."""

import re

from flows.printing import exactly
from storage import Store
from storage.macros import COMPARED, SHORT
from storage.schema import NOT_RECOMPUTED, tables_text
from storage.views import view_name

_SHARED = ("results", "best", "conflicts", "query", "query_table")
"""Views over all problems whose rows have bounds, and functions that may read them by another name."""


def assumed_in(query: str, store: Store) -> str:
    """Return a note on rows that take a column of a file as a distribution; "" if a query reads none of them.

    Args:
        query: Query that ran; it reads a view, table or macro of a problem only if it names it.
        store: The store that it read.
    """
    counted = "select problem, count(*) as n, any_value(assumed) as assumed from assumptions group by problem"
    found = store.sql(f"{counted} order by problem").to_pylist()
    read = [row for row in found if _mentions(query, row["problem"])]
    if not read:
        return ""
    count = sum(row["n"] for row in read)
    problems = "1 stored problem takes" if count == 1 else f"{count} stored problems take"
    return (
        f"{problems} a column of a file as a distribution, so their bounds are proved for its values alone: "
        f"{exactly(read[0]['assumed'])}; the view assumptions lists them."
    )


def imported_in(query: str, store: Store) -> str:
    """Return a note on imported rows; "" if a query reads none of them.

    Args:
        query: Query that ran.
        store: The store that it read.
    """
    if not store.sql("from imported limit 1").num_rows:
        return ""
    counted = "select problem, source, count(*) as n from imported join results using (point_id) group by all"
    found = store.sql(f"{counted} order by all").to_pylist()
    read = [row for row in found if _mentions(query, row["problem"])]
    if not read:
        return ""
    count, tables = sum(row["n"] for row in read), dict.fromkeys(row["source"] for row in read)
    rows = "1 stored row is" if count == 1 else f"{count} stored rows are"
    return f"{rows} {NOT_RECOMPUTED}{tables_text(list(tables))}; the view imported lists them."


def superseded_in(query: str, store: Store) -> str:
    """Return a note on rows of superseded versions; "" if a query reads none of them.

    The brackets leave them out, so only views of rows show them.

    Args:
        query: Query that ran.
        store: The store that it read.
    """
    counted = "select problem, method, count(*) as n from superseded group by all order by all"
    shown = r"(?<!brackets\.)\b(?:results|query|query_table|{})\b"
    read = [
        row
        for row in store.sql(counted).to_pylist()
        if re.search(shown.format(view_name(row["problem"])), query, re.IGNORECASE)
    ]
    if not read:
        return ""
    count, methods = sum(row["n"] for row in read), ", ".join(sorted({row["method"] for row in read}))
    rows = "1 stored row is" if count == 1 else f"{count} stored rows are"
    return (
        f"{rows} of a superseded version of {methods}, whose numbers may be false; best and lookups "
        "leave these rows out, and the view superseded lists them."
    )


def _mentions(query: str, problem: str) -> bool:
    """Return whether a query names a view over all problems, or a view, table or macro of a problem."""
    view = view_name(problem)
    short = [name for name, macro in SHORT.items() if macro in {f"{view}_at", f"{view}_noise"}]
    compared = ["compare"] if problem in COMPARED else []
    names = "|".join([*_SHARED, *short, *compared, f"{view}(?:_at|_noise)?"])
    return re.search(rf"\b(?:{names})\b", query, re.IGNORECASE) is not None
