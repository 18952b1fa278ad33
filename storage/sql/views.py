"""The views over a store as SQL, for snapshots and for plain DuckDB; users rely on the names of the views."""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import duckdb
import pyarrow as pa

from privcore import PROBLEMS
from privcore.distributions.notation import FROM_FILE, ONLY_ITS_VALUES
from privcore.parameter import Text
from privcore.problem import LookupAxis
from privcore.registry import used_versions
from storage.errors import StoreError
from storage.schema import BOOKKEEPING, IMPORTED, IMPORTS, MARK, MARKED, import_text, object_in, schema_for

CHOICE = f"""
    case status when 'ok' then 0 when 'not_applicable' then 1 when 'crashed' then 3 else 2 end,
    status = 'ok' and {MARKED},
    finished_at,
    part
"""
"""Order of several rows of a point; the first row counts. Answers come first, then reasons why a method does
not apply, then failures, and crashes last, since their cause may be external. Own answers come before
answers of lookup tables, which can be removed later; then the earliest row; then the first part."""


def view_name(problem: str) -> str:
    """Return the name of a problem's view: that of `allocation-epsilon` is `allocation_epsilon`."""
    return problem.replace("-", "_")


def fields_of(schema: pa.Schema) -> list[str]:
    """Return the problem's fields among the columns."""
    return [name for name in schema.names if name not in BOOKKEEPING]


def quoted(names: Iterable[str]) -> str:
    """Return column names for a select list."""
    return ", ".join(map(quote, names))


def quote(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quoted_product(axis: LookupAxis, prefix: str = "") -> str:
    """Return the quantity of an axis as an SQL expression, with a prefix such as `b.` for each column."""
    return " * ".join(f"{prefix}{quote(name)}" for name in axis.factors)


def sql_type(kind: pa.DataType) -> str:
    """Return DuckDB's name of a column's type.

    Raises:
        StoreError: No column of a store has this type.
    """
    types = {
        pa.float64(): "double",
        pa.int64(): "bigint",
        pa.bool_(): "boolean",
        pa.timestamp("us", tz="UTC"): "timestamptz",
        pa.string(): "varchar",
    }
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if kind not in types:
        raise StoreError(f"Expected a column of numbers, texts, times or booleans, got {kind}.")
    return types[kind]


def chosen(rows: str) -> str:
    """Return the query for one row of each point.

    Args:
        rows: A relation with one or more rows of each point: a table, or a query in parentheses.
    """
    return f"from {rows} qualify row_number() over (partition by point_id order by {CHOICE}) = 1"


def best_of_several(rows: str, fields: Iterable[str]) -> str:
    """Return the query for the best rigorous bracket of each problem.

    Args:
        rows: A relation with one row of each point.
        fields: The problem's fields.
    """
    return f"""
        with ends as (
            select problem_id,
                   any_value(problem) as problem,
                   {", ".join(f"any_value(r.{quote(name)}) as {quote(name)}" for name in fields)},
                   min({{'bound': -lower, 'method': method, 'point_id': point_id}}) as low,
                   min({{'bound': upper, 'method': method, 'point_id': point_id}}) as high
            from {rows} as r
            where {rigorous()}
            group by problem_id
        )
        select problem_id, problem, {_of("ends", fields)},
               0 - low.bound as lower,
               high.bound as upper,
               if(low.bound < 0, low.method, null) as lower_method,
               if(high.bound < 'inf', high.method, null) as upper_method,
               if(low.bound < 0, low.point_id, null) as lower_point,
               if(high.bound < 'inf', high.point_id, null) as upper_point
        from ends"""


def best_of_one(rows: str, fields: Iterable[str]) -> str:
    """Return the same query for problems with one rigorous row each, which need no comparison."""
    return f"""
        select problem_id, problem, {_of("r", fields)}, lower, upper,
               if(lower > 0, method, null) as lower_method,
               if(upper < 'inf', method, null) as upper_method,
               if(lower > 0, point_id, null) as lower_point,
               if(upper < 'inf', point_id, null) as upper_point
        from {rows} as r
        where {rigorous()}"""


def _of(table: str, fields: Iterable[str]) -> str:
    """Return qualified columns: in a view below a macro, DuckDB 2.0.0 takes a bare name for an argument."""
    return ", ".join(f"{table}.{quote(name)}" for name in fields)


def current() -> str:
    """Return the condition that a row is of a version of its method whose answers are used.

    A method whose numbers changed has a higher version. Answers of its older versions are used only if all
    that changed is the width.
    """
    changed: dict[int, list[str]] = {}
    for name, n in used_versions().items():
        changed.setdefault(n, []).append(f"'{name}'")
    older = [f"method_version < {n} and method in ({','.join(changed[n])})" for n in changed if n > 1]
    return f"not ({' or '.join(older)})" if older else "true"


def superseded_rows() -> str:
    """Return the query for rows whose numbers a later version of the method replaced: they may be false."""
    columns = "point_id, problem, method, method_version"
    return f"select {columns} from results where status = 'ok' and not ({current()})"


def rigorous() -> str:
    """Return the condition that a row's ends are proved, not trivial, and not superseded."""
    return f"status = 'ok' and confidence = 1 and (lower > 0 or upper < 'inf') and {current()}"


def views(problems: Mapping[str, pa.Schema], held: Collection[str]) -> list[str]:
    """Return the statements that create the views over all problems.

    Args:
        problems: Columns by problem; each has its rows in `main.<problem>`, its brackets in
            `brackets.<problem>`.
        held: The problems with rows. The others only add their columns, since each relation of a view costs
            some milliseconds in every query.
    """
    types = _types(problems.values())
    read = {name: problems[name] for name in problems if name in held} or dict(list(problems.items())[:1])
    before = ["point_id", "problem_id", "problem", "method", "method_version", "knobs"]
    some = next(iter(problems.values()))
    after = [n for n in some.names if n in BOOKKEEPING and n not in before]
    ends = ["lower", "upper", "lower_method", "upper_method", "lower_point", "upper_point"]
    return [
        f"""
        create or replace view results as
        {_union("main", [*before, *types, *after, "part"], types, read)}
        """,
        f"""
        create or replace view best as
        {_union("brackets", ["problem_id", "problem", *types, *ends], types, read)}
        """,
        f"""
        create or replace view conflicts as
        select problem_id, a.problem, {", ".join(f"a.{quote(name)}" for name in types)},
               a.lower, b.upper,
               a.method as lower_method, b.method as upper_method,
               a.method_version as lower_method_version, b.method_version as upper_method_version,
               a.point_id as lower_point, b.point_id as upper_point
        from (from best select problem_id where lower > upper)
        join (from results where {rigorous()}) as a using (problem_id)
        join (from results where {rigorous()}) as b using (problem_id)
        where a.lower > b.upper
        """,
        """
        create or replace view failures as
        select * from results where status not in ('ok', 'not_applicable')
        """,
        """
        create or replace view provenance as
        select method, method_version, git_commit, git_dirty, versions, host,
               count(*) as points, sum(seconds) as seconds, sum(cpu_seconds) as cpu_seconds,
               min(finished_at) as first_finished_at, max(finished_at) as last_finished_at
        from results
        group by all
        """,
        f"""
        create or replace view assumptions as
        select distinct problem_id, problem, {_assumption(types)} as assumed
        from results where assumed <> ''
        """,
    ]


ENDS_OF_BEST = {
    "lower": "Best proved lower end, or 0",
    "upper": "Best proved upper end, or infinity",
    **{f"{end}_method": f"Method that proved the {end} end, or null" for end in ("lower", "upper")},
    **{f"{end}_point": f"Point of the {end} end: `point_id` in results" for end in ("lower", "upper")},
}
"""Meanings of the columns of `best` that `results` lacks or has with other meanings."""


def meanings() -> dict[str, dict[str, str]]:
    """Return the meaning of each column of the views `results` and `best`.

    A field that differs between problems has all of its meanings.
    """
    found: dict[str, dict[str, None]] = {}
    for kind in PROBLEMS:
        for field in schema_for(kind):
            found.setdefault(field.name, {})[field.metadata[b"meaning"].decode()] = None
    columns = {name: "; or: ".join(texts) for name, texts in found.items()}
    columns["part"] = "Parquet file that has the row, below the folder data"
    best = {name: text for name, text in columns.items() if name not in BOOKKEEPING | {"part"}}
    return {
        "results": columns,
        "best": {name: columns[name] for name in ("problem_id", "problem")} | best | ENDS_OF_BEST,
    }


def comments() -> list[str]:
    """Return the statements that comment on the columns of the views `results` and `best`."""
    return [
        f"comment on column {view}.{quote(name)} is " + "'" + text.replace("'", "''") + "'"
        for view, columns in meanings().items()
        for name, text in columns.items()
    ]


def _assumption(fields: Collection[str]) -> str:
    """Return the SQL expression for the assumption behind columns of files taken as distributions."""
    names = dict.fromkeys(
        name
        for kind in PROBLEMS
        for name, parameter in kind.parameters.items()
        if isinstance(parameter, Text) and parameter.assumes and name in fields
    )
    said = (
        f"""case when regexp_matches({quote(name)}, '{FROM_FILE}', 's')
        then regexp_replace({quote(name)}, '^.*?{FROM_FILE}.*$', '{ONLY_ITS_VALUES}', 's') end"""
        for name in names
    )
    return f"concat_ws('; ', {', '.join(said)})" if names else "''"


def _types(problems: Iterable[pa.Schema]) -> dict[str, str]:
    """Return the SQL type of every field; types of a release agree, but those of two releases may not."""
    found: dict[str, str] = {}
    for schema in problems:
        for name in fields_of(schema):
            kind = sql_type(schema.field(name).type)
            before = found.setdefault(name, kind)
            if kind != before:
                found[name] = "double" if {kind, before} == {"bigint", "double"} else "varchar"
    return found


def _union(
    tables: str, names: Iterable[str], types: Mapping[str, str], problems: Mapping[str, pa.Schema]
) -> str:
    """Return the query for the columns of several problems, in which the fields of the others are null."""
    fields = ", ".join(f"null::{kind} as {quote(name)}" for name, kind in types.items())
    rows = " union all by name ".join(f'from {tables}."{view_name(problem)}"' for problem in problems)
    return f"select {quoted(names)} from ((select {fields} where false) union all by name {rows})"


# Contradictions between stored answers: to one point, or of two methods to one problem.

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
            detail += f"; one is{import_text([source], ' {}')}, see `privsweep table remove {source}`"
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
        detail = f"For problem {problem}, {low} has at least {lower!r} in {shown(below)}{_source(theirs)}"
        detail += f", but {high} at most {upper!r} in {shown(above)}{_source(other)}"
        yield below, f"{detail}; {remedy((theirs, other))}."


def _source(table: str) -> str:
    return import_text([table] if table else [], " ({})")


def remedy(sources: Iterable[str]) -> str:
    """Return the command that resolves a contradiction.

    Args:
        sources: The lookup table of each row; an empty text for an own row.
    """
    known = sorted(set(filter(None, sources)))
    removals = [f"`privsweep table remove {source}` takes that import back" for source in known]
    return "; ".join(removals) or "`privsweep verify --recompute all` finds which of them is wrong"


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
        new[text] = json.dumps({**versions, IMPORTS: source}, sort_keys=True, separators=(",", ":"))
    place, field = rows.column_names.index("versions"), rows.schema.field("versions")
    values = pa.array([new[text] for text in column.to_pylist()]).cast(field.type)
    return rows.set_column(place, field, values)


def source_of(versions: str) -> str:
    """Return the lookup table of a row from its column `versions`, at most 100 characters, or ""."""
    found = re.search(MARK, versions or "")
    return found[1] if found else ""


def sources_of(versions: pa.ChunkedArray) -> dict[str, int]:
    """Return the number of rows of each lookup table, from the column `versions`."""
    found = Counter[str]()
    for each in versions.cast(pa.string()).value_counts().to_pylist():
        found[source_of(each["values"])] += each["counts"]
    del found[""]
    return dict(found)
