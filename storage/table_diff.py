"""Differences of brackets and answers between two lookup tables."""

from dataclasses import dataclass

import duckdb

from storage.lookup_table import ANSWER, LookupTable
from storage.views import rigorous


@dataclass(frozen=True, kw_only=True)
class Moved:
    """What became of the brackets of one problem class between two tables, as numbers of problems.

    Attributes:
        problem: Name of the class.
        same: With the same ends.
        added: Only in the new table.
        removed: Only in the old table.
        tighter: Whose new bracket lies within the old one.
        wider: Whose new bracket contains the old one.
        shifted: Of which one end is tighter and the other wider.
        disjoint: Whose brackets contradict one another, or themselves: one of the tables is wrong.
        answers: Single answers, proved or not, that differ or that only one table has. Where no bracket
            moved, this is why the versions are not the same.
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
    """Return what became of every problem between two tables, by the best proved brackets.

    Args:
        old: One table.
        new: Another one, usually a later one.

    Returns:
        Numbers for each problem class of either table, sorted by name.
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
