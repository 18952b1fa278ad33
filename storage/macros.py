"""Table macros for people who write SQL: lookups off the grid, noise for a target, schemes side by side.

They are generated from the problem classes, and find by plain search what `storage.lookup` finds.
"""

from collections.abc import Mapping

from privcore import PROBLEMS, find_problem
from privcore.parameter import Choice, Integer, Parameter, Real, Value
from privcore.problem import Problem
from storage.corners import relation
from storage.views import view_name

SHORT = {
    "epsilon_at": "allocation_epsilon_at",
    "delta_at": "allocation_delta_at",
    "noise_for": "allocation_epsilon_noise",
}
"""Short names of the macros that are asked for most."""

NOISE = ("sigma", "scale")
"""Fields that more noise makes larger."""

COMPARED = ("allocation-epsilon", "poisson-epsilon", "shuffling-epsilon", "unamplified-epsilon")


_EXPECTED = """
    create or replace macro expected(given, holds, what) as case when holds then given
    else error('Expected ' || what || ', got ' || coalesce(given::varchar, 'nothing') || '.') end
"""


def macros() -> list[str]:
    """Return the statements that make the macros.

    `<problem>_at(field := value, ...)` is one row: the best bracket that is proved, with its sources.
    `<problem>_noise(epsilon := value, ...)` is the smallest stored noise whose upper end meets the target.
    `compare(...)` has a row for each way to choose the examples of a step.
    """
    made: dict[str, tuple[str, str]] = {}
    for kind in PROBLEMS:
        fields = {name: name for name in kind.parameters}
        made[f"{view_name(kind.name)}_at"] = _signature(kind, ()), _at(kind, fields)
        for name in NOISE:
            if name in kind.monotone and kind.asks not in kind.parameters:
                made[f"{view_name(kind.name)}_noise"] = _signature(kind, (name,)), _noise(kind, name, fields)
    made |= {short: made[long] for short, long in SHORT.items()}
    made["compare"] = _signature(find_problem(COMPARED[0]), ()), _compare()
    tables = [f"create or replace macro {n}({signature}) as table {q}" for n, (signature, q) in made.items()]
    return [_EXPECTED, *tables]


def _signature(kind: type[Problem], without: tuple[str, ...]) -> str:
    """Return the arguments of a macro, all of them named; null stands for one that must be given."""
    defaults = kind.defaults()
    names = [f"{kind.asks} := null"] if without else []
    names += [f"{n} := {literal(defaults.get(n))}" for n in kind.parameters if n not in without]
    return ", ".join(names)


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


def _checked(kind: type[Problem], expressions: Mapping[str, str]) -> dict[str, str]:
    """Return the expressions so that a value outside its domain is an error: NaN is above all in DuckDB."""
    return {
        name: _within(given, _condition(kind.parameters[name], given), kind.parameters[name])
        for name, given in expressions.items()
    }


def _within(given: str, condition: str, parameter: Parameter) -> str:
    expected = f"{parameter.name} in {parameter.domain}".replace("'", "''")
    return f"expected({given}, {condition}, '{expected}')"


def _condition(parameter: Parameter, given: str) -> str:
    match parameter:
        case Real(lower=lower, upper=upper):
            above = f"{given} {'>' if parameter.lower_open else '>='} {lower!r}"
            below = f"{given} {'<' if parameter.upper_open else '<='} {upper!r}"
            infinite = f" or {given} = 'inf'::double" if parameter.infinite else ""
            return f"({above} and {below}{infinite})"
        case Integer(lower=lower, upper=upper):
            return f"({given} between {lower} and {upper} and {given} = floor({given}))"
        case Choice(choices=choices):
            return f"{given} in ({', '.join(map(literal, choices))})"
    return f"{given} is not null"


def _corner(kind: type[Problem], given: Mapping[str, str], end: str) -> str:
    """Return the query for the best corner on one side: at most one row."""
    fields = _checked(kind, given)
    relations = [f"b.{n} {relation(kind, n, end)} {checked}" for n, checked in fields.items()]
    equal = " and ".join(f"b.{n} = {plain}" for n, plain in given.items())
    source = ", ".join(f"'{n}': b.{n}" for n in kind.parameters)
    order = ", ".join(f"b.{n}" for n in kind.parameters)
    return f"""
        select b.{end} as bound, b.{end}_method as method, {{{source}}} as source
        from brackets.{view_name(kind.name)} as b
        where {" and ".join(relations)} and b.{end}_method is not null
        order by b.{end} {"asc" if end == "upper" else "desc"}, ({equal}) desc, {order} limit 1"""


def _at(kind: type[Problem], fields: Mapping[str, str]) -> str:
    contradiction = f"The store contradicts itself about {kind.name}; see the view conflicts."
    return f"""
        select '{kind.name}' as problem,
               case when low.bound > high.bound then error('{contradiction}') else coalesce(low.bound, 0) end
                   as lower,
               coalesce(high.bound, 'inf') as upper,
               low.method as lower_method, high.method as upper_method,
               low.source as lower_from, high.source as upper_from
        from (select 1) left join ({_corner(kind, fields, "lower")}) as low on true
        left join ({_corner(kind, fields, "upper")}) as high on true"""


def _noise(kind: type[Problem], noise: str, fields: Mapping[str, str]) -> str:
    others = _checked(kind, {name: given for name, given in fields.items() if name != noise})
    relations = [f"b.{n} {relation(kind, n, 'upper')} {checked}" for n, checked in others.items()]
    target = (
        f"expected({kind.asks}, {kind.asks} >= 0 and {kind.asks} < 'inf'::double, '{kind.asks} in [0, inf)')"
    )
    source = ", ".join(f"'{n}': b.{n}" for n in kind.parameters)
    order = ", ".join(f"b.{n}" for n in kind.parameters)
    return f"""
        select '{kind.name}' as problem, b.{noise} as {noise}, b.upper as upper,
               b.upper_method as upper_method, {{{source}}} as upper_from
        from brackets.{view_name(kind.name)} as b
        where {" and ".join(relations)} and b.upper <= {target} and b.upper_method is not null
        order by b.{noise}, b.upper, {order} limit 1"""


def _compare() -> str:
    """Return the query for several schemes at equal parameters; a scheme that has no such case has no row."""
    rows = []
    for kind in map(find_problem, COMPARED):
        given = {n: "(participations / steps)" if n == "sampling_probability" else n for n in kind.parameters}
        once = "" if "epochs" in kind.parameters else "where participations = 1 and epochs = 1"
        columns = "problem, lower, upper, lower_method, upper_method"
        rows.append(f"select {columns} from ({_at(kind, given)}) {once}")
    return " union all ".join(rows)
