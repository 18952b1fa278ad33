"""Contradictions between stored answers: to one point, or of two methods to one problem."""

from collections.abc import Callable, Iterable, Iterator

import duckdb

from storage.marks import IMPORTED
from storage.views import rigorous

ROUNDING = 1e-6
"""Relative difference of estimates and intervals of one point that other processors or libraries may make.

Proofs may differ more, because rounding decides which cells are refined; they must intersect.
"""


def contradict(one: str, other: str) -> str:
    """Return a condition in SQL: two answers to one point contradict one another.

    Args:
        one: Expression for a column of one answer, with `{}` in the place of the column, such as `min({})`.
        other: The same for the other answer; for aggregates, the two may be the extremes of all answers.
    """

    def apart(column: str) -> str:
        """Return a condition: the two numbers, or nulls, differ by more than rounding."""
        a, b = one.format(column), other.format(column)
        close = f"isfinite({a}) and isfinite({b})"
        close += f" and abs({a} - {b}) <= {ROUNDING!r} * greatest(abs({a}), abs({b}))"
        return f"({a} is distinct from {b} and not coalesce({close}, false))"

    def both(column: str, choice: str) -> str:
        return f"{choice}({one.format(column)}, {other.format(column)})"

    proofs = f"{both('confidence', 'least')} = 1.0"
    disjoint = f"{both('lower', 'greatest')} > {both('upper', 'least')}"
    return f"({apart('value')} or if({proofs}, {disjoint}, {apart('lower')} or {apart('upper')}))"


def contradictions(
    connection: duckdb.DuckDBPyConnection, shown: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    """Yield a part of each contradiction, and a sentence about it.

    Args:
        connection: Connection with the table `answers`: all rows of a problem, with their parts.
        shown: Function that returns the name of a part in sentences.
    """
    different = connection.execute(
        f"""
        select point_id, min(part), max(part), list(distinct {IMPORTED}) filter (where {IMPORTED} <> '')
        from answers where status = 'ok' group by point_id
        having {contradict("min({})", "max({})")} order by point_id
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
            arg_max({IMPORTED}, lower), arg_min(method, upper)::varchar, min(upper), arg_min(part, upper),
            arg_min({IMPORTED}, upper)
        from answers where {rigorous()} and lower <= upper group by problem_id
        having max(lower) > min(upper) and count(distinct point_id) > 1 order by problem_id
        """
    ).fetchall()
    for problem, low, lower, below, theirs, high, upper, above, other in disjoint:
        detail = f"For problem {problem}, {low} has at least {lower!r} in {shown(below)}{_imported(theirs)}"
        detail += f", but {high} at most {upper!r} in {shown(above)}{_imported(other)}"
        yield below, f"{detail}; {remedy((theirs, other))}."


def remedy(sources: Iterable[str]) -> str:
    """Return the command that resolves a contradiction.

    Args:
        sources: Lookup tables from which the rows were imported; an empty text for an own row.
    """
    known = sorted(set(filter(None, sources)))
    removals = [f"`privsweep table remove {source}` takes that import back" for source in known]
    return "; ".join(removals) or "`privsweep verify --recompute all` finds which of them is wrong"


def _imported(source: str) -> str:
    return f" (imported from the table {source})" if source else ""
