"""Differences of brackets and answers between two lookup tables."""

from dataclasses import dataclass

import duckdb

from storage.lookup_table import ANSWER, LookupTable
from storage.views import rigorous


@dataclass(frozen=True, kw_only=True)
class Moved:
    """Changes of the brackets of one problem class between two tables, as numbers of problems.

    Attributes:
        problem: Name of the class.
        same: Problems with equal brackets.
        added: Problems only in the new table.
        removed: Problems only in the old table.
        tighter: Problems whose new bracket lies within the old bracket.
        wider: Problems whose new bracket contains the old bracket.
        shifted: Problems with one tighter and one wider end.
        disjoint: Problems whose brackets contradict one another, or themselves: one of the tables is wrong.
        answers: Single answers, proved or not, that differ or are only in one table. If no bracket changed,
            they explain why the versions differ.
    """

    problem: str
    same: int
    added: int
    removed: int
    tighter: int
    wider: int
    shifted: int
    disjoint: int
    answers: int


_BECAME = tuple(name for name in Moved.__dataclass_fields__ if name != "problem")


def compare(old: LookupTable, new: LookupTable) -> list[Moved]:
    """Compare the best proved brackets of two tables.

    Args:
        old: The first table.
        new: The second table, usually a later one.

    Returns:
        The changes of each problem class of either table, sorted by name.
    """
    with duckdb.connect(config={"python_enable_replacements": "false"}) as connection:
        for name, table in (("old", old), ("new", new)):
            connection.register(f"{name}_rows", table.rows)
            connection.execute(
                f"create view {name}_answers as select problem, {', '.join(ANSWER)} from {name}_rows"
            )
            connection.execute(
                f"""
                create table {name} as
                select problem_id, any_value(problem) as problem, max(lower) as lower, min(upper) as upper
                from {name}_rows where {rigorous()} group by problem_id
                """
            )
        counted = connection.execute(
            """
            select coalesce(o.problem, n.problem) as problem,
                   case when o.problem_id is null then 'added'
                        when n.problem_id is null then 'removed'
                        when greatest(o.lower, n.lower) > least(o.upper, n.upper) then 'disjoint'
                        when o.lower = n.lower and o.upper = n.upper then 'same'
                        when n.lower >= o.lower and n.upper <= o.upper then 'tighter'
                        when n.lower <= o.lower and n.upper >= o.upper then 'wider'
                        else 'shifted' end as became,
                   count(*)
            from old as o full join new as n using (problem_id)
            group by 1, 2
            union all
            select problem, 'answers', count(distinct point_id)
            from ((from old_answers except from new_answers)
                  union all (from new_answers except from old_answers))
            group by 1
            order by 1
            """
        ).fetchall()
    numbers: dict[str, dict[str, int]] = {}
    for problem, became, count in counted:
        numbers.setdefault(problem, dict.fromkeys(_BECAME, 0))[became] = count
    return [Moved(problem=problem, **counts) for problem, counts in numbers.items()]
