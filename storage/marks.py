"""The marks of imported rows: the key `imported` in the column `versions`, and its words in answers."""

from collections.abc import Sequence

LONGEST_MARK = 100
"""Most characters of a mark that are read: the version of a lookup table is shorter, unless it is forged."""

MARK = f"""[{{,]"imported":"([^"]{{1,{LONGEST_MARK}}})"""
"""Regular expression of the mark of an imported row, in its column `versions`; its group is the lookup table.

SQL and Python read marks with this expression alone, so they agree on every text. In JSON without spaces, as
`table import` writes it, it finds keys only: a quotation mark within a key or value follows a backslash.
"""

MARKED = f"""(contains(versions::varchar, '"imported":"') and regexp_matches(versions::varchar, '{MARK}'))"""
"""Condition that a row was imported from a lookup table; the search for a text alone is faster."""

IMPORTED = f"""regexp_extract(versions::varchar, '{MARK}', 1)"""
"""Lookup table from which a row was imported, or an empty text."""

IMPORTED_ROWS = f"""
    select point_id, {IMPORTED} as source from results where {MARKED}
"""
"""Query for the ids of the imported rows, with their lookup tables."""

NOT_RECOMPUTED = "imported and not recomputed"
"""Kind of a bound with an end from a lookup table that somebody else computed, in place of `proved`."""


def tables_text(imported: Sequence[str]) -> str:
    """Return the clause that names lookup tables, or ""."""
    return f", from the lookup table {' and '.join(imported)}" if imported else ""


def origin_text(imported: Sequence[str]) -> str:
    """Return the clause that an end of a bracket was imported, and from where, or ""."""
    return f"{NOT_RECOMPUTED}{tables_text(imported)}" if imported else ""
