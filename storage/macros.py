"""Table macros for SQL users: lookups off the grid, noise for a target, and schemes side by side.

They are generated from the problem classes, and give the results of `storage.lookup` by plain search.
"""

from collections.abc import Mapping

from privcore import PROBLEMS, find_problem
from privcore.parameter import Choice, Integer, Parameter, Real, Value
from privcore.problem import Problem
from privcore.training import sampler_of
from storage.macro_ends import SERIES, ends
from storage.macro_sizes import RATE_AT_LEAST, sized, sizes_of, sound_sizes
from storage.views import view_name

SHORT = {
    "epsilon_at": "allocation_epsilon_at",
    "delta_at": "allocation_delta_at",
    "noise_for": "allocation_epsilon_noise",
}
"""Short names of the most used macros."""

NOISE = ("sigma", "scale")
"""Fields that increase with the noise."""

COMPARED = ("allocation-epsilon", "poisson-epsilon", "shuffling-epsilon", "unamplified-epsilon")

SHUFFLED = {
    "redraw": "case when epochs = 1 then 'one-epoch' else 'each-epoch' end",
    "adjacency": "case when adjacency = 'add-remove' then 'zero-out' else adjacency end",
}
"""Fields of shuffling next to the other schemes: a new order for each epoch, and zero-out for add-remove."""

_QUOTIENT = "as_double(examples) / as_double(batch_size)"
COMPARED_WITH = {
    "poisson-epsilon": {
        "steps": f"(case when batch_size is null then steps else ceil({_QUOTIENT}) end)",
        "sampling_probability": (
            "(case when batch_size is null then participations / steps "
            "else rate_at_least(as_double(participations) * as_double(batch_size), as_double(examples)) end)"
        ),
    },
    "unamplified-epsilon": {
        "steps": f"(case when batch_size is null then steps else floor({_QUOTIENT}) end)"
    },
}
"""Fields of these schemes in `compare`: Poisson sampling has the same examples in a step on average."""

_POINTS = ("point", "also_point")

_HELPERS = (
    """
    create or replace macro expected(given, holds, what) as case when holds then true
    else error('Expected ' || what || ', got ' || coalesce(given::varchar, 'nothing') || '.') end
    """,
    """
    create or replace macro as_double(given) as
    case when typeof(given) <> 'BOOLEAN' then try_cast(given as double) end
    """,
    RATE_AT_LEAST,
    *SERIES,
)


def macros() -> list[str]:
    """Return the statements that create the macros.

    `<problem>_at(field := value, ...)` gives one row: the best proved bracket, with its sources.
    `<problem>_noise(epsilon := value, ...)` gives the smallest stored noise whose upper end meets the target.
    `compare(...)` gives a row for each scheme of choosing the examples of a step.
    """
    made: dict[str, tuple[str, str]] = {}
    for kind in PROBLEMS:
        fields = {name: name for name in kind.parameters}
        made[f"{view_name(kind.name)}_at"] = _signature(kind, ()), _at(kind, fields)
        for name in NOISE:
            if name in kind.monotone and kind.asks not in kind.parameters:
                made[f"{view_name(kind.name)}_noise"] = _signature(kind, (name,)), _noise(kind, name)
    made |= {short: made[long] for short, long in SHORT.items()}
    made["compare"] = _signature(find_problem(COMPARED[0]), ()), _compare()
    tables = [f"create or replace macro {n}({signature}) as table {q}" for n, (signature, q) in made.items()]
    return [*_HELPERS, *tables]


def _signature(kind: type[Problem], without: tuple[str, ...]) -> str:
    """Return the named arguments of a macro with their defaults; null marks a required argument."""
    defaults = {name: value for name, value in kind.defaults().items() if name not in kind.stated}
    names = [f"{kind.asks} := null"] if without else []
    names += [f"{n} := {literal(defaults.get(n))}" for n in kind.parameters if n not in without]
    return ", ".join([*names, *(f"{name} := null" for name in sizes_of(kind))])


def literal(value: Value | None) -> str:
    """Return a value in SQL."""
    if value is None:
        return "null"
    return (
        f"'{value}'"
        if isinstance(value, str)
        else f"'{value}'::double"
        if value == float("inf")
        else repr(value)
    )


def _asked(
    kind: type[Problem], expressions: Mapping[str, str], also: Mapping[str, str], from_sizes: bool = True
) -> str:
    """Return the relation of one row with the question, checked and in the types of the fields.

    The user's expressions occur only here, where none of our names is in scope that could shadow theirs.

    Args:
        kind: The problem.
        expressions: The user's expression for each field.
        also: The user's expressions for other numbers, which may be any number from 0.
        from_sizes: Whether examples and batch size may replace steps and sampling probability.
    """
    columns, checks = [], []
    for name in expressions:
        parameter, given = kind.parameters[name], f"given.{name}"
        checks.append(_check(name, parameter.domain, _condition(parameter, given)))
        columns.append(f"{_typed(parameter, given)} as {name}")
    for name in also:
        number = f"as_double(given.{name})"
        checks.append(_check(name, "[0, inf)", f"({number} >= 0 and {number} < 'inf'::double)"))
        columns.append(f"{number} as {name}")
    sizes = {name: name for name in sizes_of(kind)} if from_sizes else {}
    every = {**expressions, **also, **sizes}
    names = ", ".join(every)
    given = f"(select {', '.join(every.values())}) as given({names})"
    # no `as` inside: later expressions would see such names
    if from_sizes and sampler_of(kind):
        given = given.replace(" as given(", " as raw(")
        given = f"(select {', '.join(sized(kind, name) for name in every)} from {given}) as given({names})"
        checks.insert(0, sound_sizes(kind))
    return f"(select {', '.join(columns)} from {given} where {' and '.join(checks)}) as asked"


def _check(name: str, domain: str, condition: str) -> str:
    expected = f"{name} in {domain}".replace("'", "''")
    return f"expected(given.{name}, {condition}, '{expected}')"


def _condition(parameter: Parameter, given: str) -> str:
    """Return the condition that a value lies in its domain; in DuckDB, NaN is larger than all numbers."""
    number = f"as_double({given})"
    match parameter:
        case Real(lower=lower, upper=upper):
            above = f"{number} {'>' if parameter.lower_open else '>='} {lower!r}"
            below = f"{number} {'<' if parameter.upper_open else '<='} {upper!r}"
            infinite = f" or {number} = 'inf'::double" if parameter.infinite else ""
            return f"({above} and {below}{infinite})"
        case Integer(lower=lower, upper=upper):
            return f"({number} between {lower} and {upper} and {number} = floor({number}))"
        case Choice(choices=choices):
            return f"{given}::varchar in ({', '.join(map(literal, choices))})"
    return f"{given} is not null"


def _typed(parameter: Parameter, given: str) -> str:
    match parameter:
        case Real():
            return f"as_double({given})"
        case Integer():
            return f"try_cast(as_double({given}) as bigint)"
    return f"{given}::varchar"


def _sound(kind: type[Problem], lower: str, upper: str) -> str:
    """Return a condition that is true or raises an error; it is in a `where`, since columns may be unused."""
    contradiction = (
        f"The store contradicts itself about {kind.name}; see the view conflicts and `privsweep verify`."
    )
    return f"case when {lower} > {upper} then error('{contradiction}') else true end"


def _at(kind: type[Problem], given: Mapping[str, str], from_sizes: bool = True) -> str:
    """Return the query for the bracket of a problem; the arguments are as in `_asked`."""
    return f"""
        select '{kind.name}' as problem,
               coalesce(-found.low.bound, 0) as lower, coalesce(found.high.bound, 'inf') as upper,
               found.low.method as lower_method, found.high.method as upper_method,
               found.low.source as lower_from, found.high.source as upper_from,
               found.low.also as lower_also, found.high.also as upper_also,
               found.low.also_method as lower_also_method, found.high.also_method as upper_also_method,
               {_imported(*(f"found.{end}.{point}" for end in ("low", "high") for point in _POINTS))}
        from ({ends(kind, _asked(kind, given, {}, from_sizes))}) as found
        where {_sound(kind, "-found.low.bound", "found.high.bound")}"""


def _imported(*points: str) -> str:
    """Return the column `imported`: versions of the tables from which rows with these ids were imported."""
    return f"""
        coalesce((
            select list(distinct i.source order by i.source) from imported as i
            join (select unnest([{", ".join(points)}]) as point_id) as used using (point_id)
        ), []) as imported"""


def _noise(kind: type[Problem], noise: str) -> str:
    """Return the query for the least stored noise whose upper end, also by convexity, meets the target.

    An end from two stored problems holds for the larger one of their noises.
    """
    given = {name: name for name in kind.parameters if name != noise}
    question = _asked(kind, given, {kind.asks: kind.asks})
    stored = f"(select distinct b.{noise} from brackets.{view_name(kind.name)} as b) as stored"
    every = f"(select * from {question}, {stored}) as asked"
    return f"""
        select '{kind.name}' as problem, found.least.noise as {noise}, found.least.upper as upper,
               found.least.high.method as upper_method, found.least.high.source as upper_from,
               found.least.high.also as upper_also, found.least.high.also_method as upper_also_method,
               {_imported(*(f"found.least.high.{point}" for point in _POINTS))}
        from (
            select min({{
                'noise': greatest(high.source.{noise}, high.also.{noise}),
                'upper': high.bound, 'lower': low.bound, 'high': high
            }}) filter (high.bound <= {kind.asks}) as least
            from ({ends(kind, every, kind.asks)})
        ) as found
        where found.least is not null and {_sound(kind, "-found.least.lower", "found.least.upper")}"""


def _compare() -> str:
    """Return the query for several schemes at equal parameters; an inapplicable scheme has no row."""
    rows = []
    for kind in map(find_problem, COMPARED):
        once = kind.name == "shuffling-epsilon"
        other = SHUFFLED if once else COMPARED_WITH.get(kind.name, {})
        given = {name: other.get(name, name) for name in kind.parameters}
        applies = "participations = 1" if once else "true"
        columns = "problem, lower, upper, lower_method, upper_method, imported"
        query = _at(kind, given, from_sizes=kind.name not in COMPARED_WITH)
        rows.append(f"select {columns} from (select {applies}) as scheme(applies), ({query}) where applies")
    return " union all ".join(rows)
