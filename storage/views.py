"""The tables and views of a snapshot, as SQL; docs and users rely on their names and columns."""

import duckdb
import pyarrow as pa

from privcore import METHODS
from storage.schema import BOOKKEEPING

LAYOUT = 3
"""Raised with every change of what a snapshot contains, so that an old cache is not taken for a new one."""

CHOICE = """
    case status when 'ok' then 0 when 'not_applicable' then 1 when 'crashed' then 3 else 2 end,
    finished_at,
    part
"""
"""Which of several rows of a point counts: an answer, then a reason why there is none, and a crash last,
since it may have come from outside; then the earliest; then the first part."""


def view_name(problem: str) -> str:
    """Return the name of a problem's view: `allocation-epsilon` is `allocation_epsilon`."""
    return problem.replace("-", "_")


def fields_of(schema: pa.Schema) -> list[str]:
    """Return the problem's fields among the columns."""
    return [name for name in schema.names if name not in BOOKKEEPING]


def quoted(names: list[str]) -> str:
    """Return column names for a select list."""
    return ", ".join(map(quote, names))


def quote(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def add_problem(connection: duckdb.DuckDBPyConnection, problem: str, schema: pa.Schema) -> None:
    """Make a problem's two tables out of the rows that wait in the temporary table `raw`.

    `main.<problem>` has one row a point; `brackets.<problem>` one row a problem, the best rigorous bracket.
    """
    view, fields = view_name(problem), fields_of(schema)
    connection.execute(
        f"""
        create table main."{view}" as
        select * from raw
        qualify row_number() over (partition by point_id order by {CHOICE}) = 1
        order by {quoted(fields)}, method, point_id
        """
    )
    connection.execute(
        f"""
        create table brackets."{view}" as
        with ends as (
            select problem_id,
                   any_value(problem) as problem,
                   {", ".join(f"any_value({quote(name)}) as {quote(name)}" for name in fields)},
                   min({{'bound': -lower, 'method': method, 'point_id': point_id}}) as low,
                   min({{'bound': upper, 'method': method, 'point_id': point_id}}) as high
            from main."{view}"
            where {_rigorous()}
            group by problem_id
        )
        select problem_id, problem, {quoted(fields)},
               0 - low.bound as lower,
               high.bound as upper,
               if(low.bound < 0, low.method, null) as lower_method,
               if(high.bound < 'inf', high.method, null) as upper_method,
               if(low.bound < 0, low.point_id, null) as lower_point,
               if(high.bound < 'inf', high.point_id, null) as upper_point
        from ends
        order by {quoted(fields)}
        """
    )


def _rigorous() -> str:
    """Return the condition under which a row's ends are proved and say something.

    A method whose numbers moved has a higher version: what an older version claimed is no longer relied on.
    """
    superseded = [
        f"and not (method = '{m.name}' and method_version < {m.version})" for m in METHODS if m.version > 1
    ]
    return f"status = 'ok' and confidence = 1 and (lower > 0 or upper < 'inf') {' '.join(superseded)}"


def add_views(connection: duckdb.DuckDBPyConnection, problems: dict[str, pa.Schema]) -> None:
    """Make the views over all problems."""
    fields = list(dict.fromkeys(name for schema in problems.values() for name in fields_of(schema)))
    before = ["point_id", "problem_id", "problem", "method", "method_version", "knobs"]
    some = next(iter(problems.values()))
    after = [n for n in some.names if n in BOOKKEEPING and n not in before]
    ends = ["lower", "upper", "lower_method", "upper_method", "lower_point", "upper_point"]
    connection.execute(
        f"""
        create view results as select {quoted([*before, *fields, *after, "part"])}
        from ({_union("main", list(problems))});

        create view best as select {quoted(["problem_id", "problem", *fields, *ends])}
        from ({_union("brackets", list(problems))});

        create view conflicts as
        select problem_id, a.problem, {", ".join(f"a.{quote(name)}" for name in fields)},
               a.lower, b.upper,
               a.method as lower_method, b.method as upper_method,
               a.method_version as lower_method_version, b.method_version as upper_method_version,
               a.point_id as lower_point, b.point_id as upper_point
        from (from best select problem_id where lower > upper)
        join (from results where {_rigorous()}) as a using (problem_id)
        join (from results where {_rigorous()}) as b using (problem_id)
        where a.lower > b.upper;

        create view failures as
        select * from results where status not in ('ok', 'not_applicable');

        create view provenance as
        select method, method_version, git_commit, git_dirty, versions, host,
               count(*) as points, sum(seconds) as seconds, sum(cpu_seconds) as cpu_seconds,
               min(finished_at) as first_finished_at, max(finished_at) as last_finished_at
        from results
        group by all
        """
    )


def _union(schema: str, problems: list[str]) -> str:
    return " union all by name ".join(f'from {schema}."{view_name(problem)}"' for problem in problems)
