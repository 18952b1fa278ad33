"""Contradictions between stored answers: to one point, or of two methods to one problem."""

from collections.abc import Callable, Iterator

import duckdb

from storage.views import IMPORTED, rigorous

ROUNDING = 1e-6
"""Relative difference of estimates and intervals of one point that other processors or libraries may make.

Proofs may differ more, because rounding decides which cells are refined; they must intersect.
"""


def apart(one: str, other: str) -> str:
    """Return a condition in SQL: two numbers, or nulls, differ by more than rounding."""
    close = f"isfinite({one}) and isfinite({other}) and abs({one} - {other})"
    close += f" <= {ROUNDING!r} * greatest(abs({one}), abs({other}))"
    return f"({one} is distinct from {other} and not coalesce({close}, false))"


def contradictions(
    connection: duckdb.DuckDBPyConnection, shown: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    """Yield a part of each contradiction, and a sentence about it.

    Args:
        connection: Connection with the table `answers`: all rows of a problem, with their parts.
        shown: Function that returns the name of a part in sentences.
    """
    differ = " or ".join(apart(f"min({end})", f"max({end})") for end in ("lower", "upper"))
    other = apart("min(value)", "max(value)")
    different = connection.execute(
        f"""
        select point_id, min(part), max(part), list(distinct {IMPORTED}) filter (where {IMPORTED} <> '')
        from answers where status = 'ok' group by point_id
        having {other} or if(bool_and(confidence = 1.0), max(lower) > min(upper), {differ}) order by point_id
        """
    ).fetchall()
    for point, *both, sources in different:
        detail = f"Point {point} has different answers in {' and '.join(map(shown, both))}"
        for source in sources or ():
            detail += f"; one was imported, see `privsweep table remove {source}`"
        yield both[0], f"{detail}."
    disjoint = connection.execute(
        f"""
        select problem_id, arg_max(method, lower)::varchar, max(lower), arg_max(part, lower),
            arg_min(method, upper)::varchar, min(upper), arg_min(part, upper)
        from answers where {rigorous()} and lower <= upper group by problem_id
        having max(lower) > min(upper) and count(distinct point_id) > 1 order by problem_id
        """
    ).fetchall()
    for problem, low, lower, below, high, upper, above in disjoint:
        detail = f"For problem {problem}, {low} proves at least {lower!r} in {shown(below)}"
        detail += f", but {high} at most {upper!r} in {shown(above)}"
        yield below, f"{detail}; `privsweep verify --recompute all` finds which of them is wrong."
