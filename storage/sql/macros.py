"""Table macros for SQL users: lookups off the grid, noise for a target, and schemes side by side.

They are generated from the problem classes, and give the results of `storage.sql.lookup` by plain search.
"""

import re
from collections.abc import Iterable, Mapping

from privcore import PROBLEMS, find_problem
from privcore.numerics.profile_chord import LARGEST_FALL, LARGEST_LOSS, LARGEST_RATIO, LARGEST_RISE, TERMS
from privcore.numerics.rounding import PROFILE_CHORD, SHORT_FORMULA
from privcore.parameter import Choice, Integer, Parameter, Real, Value
from privcore.problem import Problem
from privcore.training import ANY_STEPS, MORE_STEPS, SIZES, sampler_of
from storage.schema import IMPORTS
from storage.sql.lookup import NEAREST, relation
from storage.sql.views import quoted_product, view_name

# Examples and batch size in the macros for SQL, where they determine steps and sampling probability.

MOST = SIZES["examples"].upper
RATE_AT_LEAST = f"""
    create or replace macro rate_at_least(used, n) as (
        select case when (q * pow(2, s))::hugeint * try_cast(n as hugeint)
                      >= try_cast(used as hugeint) * pow(2, s)::hugeint then q
               when q is not null then least(1.0, nextafter(q, 1.0::double)) end
        from (select q, 54 - floor(log2(q)) as s
              from (select case when used between 1 and n and n <= {MOST} then used / n end as q))
    )
    """
"""Macro for used / n, rounded up: the quotient of doubles is the nearest, and integers compare it with the
exact one."""


def sizes_of(kind: type[Problem]) -> list[str]:
    """Return the numbers that may replace the steps of a problem, unless it has them as fields."""
    return [name for name in SIZES if name not in kind.parameters] if sampler_of(kind) else []


def sized(kind: type[Problem], name: str) -> str:
    """Return the text of a field, computed from examples and batch size if it was not given."""
    sampler, raw = sampler_of(kind), f"raw.{name}"
    size, batch = _number("examples"), _number("batch_size")
    if name not in ("steps", "sampling_probability"):
        return raw
    rounded = "ceil" if sampler in MORE_STEPS else "floor"
    derived = f"{rounded}({size} / {batch})" if name == "steps" else f"rate_at_least({batch}, {size})"
    both = f"error('Expected {name} or batch_size, got both.')"
    if name == "steps" and sampler in ANY_STEPS:
        both = f"{raw}::varchar"  # any number of steps with batches of this size
    return (
        f"case when raw.batch_size is null then {raw}::varchar when {raw} is not null then {both} "
        f"else ({derived})::varchar end"
    )


def _number(name: str) -> str:
    return f"as_double(raw.{name})"


def sound_sizes(kind: type[Problem]) -> str:
    """Return the condition on examples and batch size, if they were given, or an error."""
    size, batch = "as_double(given.examples)", "as_double(given.batch_size)"
    whole = f"{size} = floor({size}) and {batch} = floor({batch}) and {size} <= {MOST}"
    sound = f"{batch} between 1 and {size} and {whole}"
    absent = "given.batch_size is null" + (
        "" if "examples" in kind.parameters else " and given.examples is null"
    )
    return f"expected(given.batch_size, ({absent} or ({sound})), 'batch_size in {{1, ..., examples}}')"


# Queries for the ends of a bracket: the best corners of a question, and chords between stored deltas.
#
# They search the brackets, and give the same bits as `storage.sql.lookup`.

SERIES = (
    f"""
    create or replace macro chord_grown(x) as x * list_reduce(
        [1.0::double] || range({TERMS}, 1, -1)::double[],
        lambda chord_total, chord_k: 1.0::double + x * chord_total / chord_k)
    """,
    f"""
    create or replace macro chord_logarithm(u) as 2.0::double * (u * list_reduce(
        [0.0::double] || range({2 * TERMS - 1}, 0, -2)::double[],
        lambda chord_total, chord_k: 1.0::double / chord_k + u * u * chord_total))
    """,
)
"""Macros for e^x - 1 and log((1 + u) / (1 - u)), as in `privcore.numerics.profile_chord`. Their arguments
should be columns: a macro repeats the text of its argument, in which lambdas hide equal names."""


def _double(number: float) -> str:
    """Return a number in SQL with all digits, which a decimal may lack."""
    return f"'{number!r}'::double"


LESS, MORE, MOVE = map(_double, (1.0 - PROFILE_CHORD, 1.0 + PROFILE_CHORD, SHORT_FORMULA))
"""Factors for rounding, in SQL."""


def is_corner(kind: type[Problem], end: str, without: str = "") -> str:
    """Return the condition that the bracket `b` is a corner of the question on all axes, or all but one."""
    relations = [
        f"{quoted_product(axis, 'b.')} {relation(axis, end)} {quoted_product(axis, 'asked.')}"
        for axis in kind.lookup_axes()
        if axis.name != without
    ]
    return " and ".join([*relations, f"b.{end}_method is not null"])


def source(kind: type[Problem]) -> str:
    """Return the fields of the bracket `b` as a struct."""
    return "{" + ", ".join(f"'{name}': b.{name}" for name in kind.parameters) + "}"


def ends(kind: type[Problem]) -> str:
    """Return a query with the columns `low` and `high`: each is a struct, or null without a bound.

    Its members are `bound`, which is the end, or its negative for a lower end; `method`, `source` and
    `point`, those of the stored problem; and `also_method`, `also` and `also_point`, those of a second one if
    the end follows from two.
    """
    asked = _asked(kind)
    if not kind.exp_convex:
        low, high = (
            f"(select min({_corner(kind, end)}) {_corners(kind, end)})" for end in ("lower", "upper")
        )
        none = "also := null, also_method := null, also_point := null::varchar"
        return f"""
            select case when low is not null then struct_insert(low, {none}) end as low,
                   case when high is not null then struct_insert(high, {none}) end as high
            from (select {low} as low, {high} as high from {asked})"""
    (name,) = kind.exp_convex
    by_value = {
        end: f"""(
            select list(best.corner) from (
                select min({_corner(kind, end)}) as corner {_corners(kind, end, name)} group by b.{name}
            ) as best)"""
        for end in ("lower", "upper")
    }
    return f"""
        select better_end(low, low_chord, 0) as low,
               better_end(high, high_chord, 'inf'::double) as high
        from (
            select low, high, chord_below(lows, highs, place) as low_chord,
                   chord_above(highs, place) as high_chord
            from (
                select place, {_best("lows", name, ">=", "place")} as low,
                       {_best("highs", name, "<=", "place")} as high,
                       {_each("lows", name, ">=")} as lows, {_each("highs", name, "<=")} as highs
                from (
                    select asked.{name} as place, {_nearby(kind, name)} as nearby,
                           {by_value["lower"]} as lows, {by_value["upper"]} as highs
                    from {asked}
                ) as found
            ) as found
        ) as found"""


def _corner(kind: type[Problem], end: str) -> str:
    """Return the end of the bracket `b` as a struct; of equal ends, the question's own is the smallest."""
    bound = "b.upper" if end == "upper" else "-b.lower"
    equal = " and ".join(f"b.{name} = asked.{name}" for name in kind.parameters)
    origin = f"'source': {source(kind)}, 'method': b.{end}_method, 'point': b.{end}_point"
    return f"{{'bound': {bound}, 'other': not ({equal}), {origin}}}"


def _corners(kind: type[Problem], end: str, without: str = "") -> str:
    return f"from brackets.{view_name(kind.name)} as b where {is_corner(kind, end, without)}"


def _nearby(kind: type[Problem], name: str) -> str:
    """Return the stored values that are nearest to the question on both sides; none if its own is stored."""
    values = f"(select distinct b.{name} as place from brackets.{view_name(kind.name)} as b) as stored"
    below, above = f"stored.place < asked.{name}", f"stored.place > asked.{name}"
    return f"""(
        select case when bool_or(stored.place = asked.{name}) then [] else
            coalesce(max(stored.place, {NEAREST}) filter ({below}), [])
            || coalesce(min(stored.place, {NEAREST}) filter ({above}), []) end
        from {values})"""


def _best(corners: str, name: str, side: str, place: str) -> str:
    """Return the best corner at a value: of those with values on one side, that of the smallest bound."""
    return f"list_min(list_filter({corners}, lambda corner: corner.source.{name} {side} {place}))"


def _each(corners: str, name: str, side: str) -> str:
    """Return the best corners at all nearby values, with their own values."""
    best = _best(corners, name, side, "near")
    found = f"list_filter(list_transform(nearby, lambda near: {best}), lambda best: best is not null)"
    return f"list_transform({found}, lambda best: {{'place': best.source.{name}, 'corner': best}})"


_CHORD_ABOVE = f"""
    create or replace macro chord_above(highs, place) as (
        with pairs as (
            select l.corner as near, r.corner as far, l.corner.bound as most,
                   (place - l.place) / (r.place - l.place) as share,
                   least(l.corner.bound - r.corner.bound, {_double(LARGEST_FALL)}) as fall
            from (select unnest(highs) as l), (select unnest(highs) as r)
            where l.place < place and place < r.place and r.corner.bound < l.corner.bound
        ),
        fallen as (select *, chord_grown(fall) as fallen from pairs),
        parts as (select *, share * (fallen / (1 + fallen)) * {LESS} as part from fallen),
        ratios as (select *, part / (2 - part) as u from parts),
        gains as (select *, chord_logarithm(u) * {LESS} as gain from ratios)
        select min({{'bound': least(most, (most - gain) + most * {MOVE}), 'near': near, 'far': far}})
        from gains
    )
    """
"""Macro for the best chord above the question, from two corners as in `epsilon_above`."""

_CHORD_BELOW = f"""
    create or replace macro chord_below(lows, highs, place) as (
        with pairs as (
            select l.corner as near, r.corner as far, -l.corner.bound as least_here, r.corner.bound as most,
                   (l.place - place) / (r.place - l.place) as ratio, place < l.place as smaller,
                   case when smaller then least(least_here - most, {_double(LARGEST_FALL)})
                        else greatest(most - least_here, 0) end as change
            from (select unnest(lows) as l), (select unnest(highs) as r)
            where (place < l.place and l.place < r.place) or (r.place < l.place and l.place < place)
        ),
        grown as (
            select *, chord_grown(change) as grown from pairs
            where case when smaller then change > 0 else change <= {_double(LARGEST_RISE)} end
        ),
        parts as (
            select *, case when smaller
                then least(ratio, {_double(LARGEST_RATIO)}) * (grown / (1 + grown)) * {LESS}
                else ratio * grown * {MORE} end as part
            from grown
        ),
        ratios as (
            select *, part / (case when smaller then 2 + part else 2 - part end) as u from parts
            where smaller or part <= {_double(LARGEST_LOSS)}
        ),
        logarithms as (select *, chord_logarithm(u) as logarithm from ratios),
        moved as (select *, least_here + logarithm * {LESS} as risen from logarithms),
        bounds as (
            select near, far, case when smaller then greatest(least_here, risen - risen * {MOVE})
                else (least_here - logarithm * {MORE}) - least_here * {MOVE} end as bound
            from moved
        )
        select min({{'bound': -bound, 'near': near, 'far': far}}) from bounds where bound > 0
    )
    """
"""Macro for the best extended chord below the question, from two corners as in `epsilon_below`."""


_BETTER = """
    create or replace macro better_end(best, chord, nothing) as
    case when chord['bound'] < coalesce(best['bound'], nothing)
    then {'bound': chord['bound'], 'method': chord['near'].method, 'source': chord['near'].source,
          'also': chord['far'].source, 'also_method': chord['far'].method,
          'point': chord['near'].point, 'also_point': chord['far'].point}
    when best is not null
    then {'bound': best['bound'], 'method': best['method'], 'source': best['source'],
          'also': null, 'also_method': null, 'point': best['point'], 'also_point': null} end
    """
"""Macro for the corner or the chord, with the smaller bound, as the struct that `ends` describes."""


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
    _CHORD_ABOVE,
    _CHORD_BELOW,
    _BETTER,
    f"""
    create or replace macro tables_of(points) as coalesce((
        select list(distinct i.source order by i.source) from {IMPORTS} as i
        join (select unnest(points) as point_id) as used using (point_id)
    ), [])
    """,
    """
    create or replace macro sound(problem, lower, upper) as case when lower > upper then error(
        'The store contradicts itself about ' || problem || '; see the view conflicts and `privsweep verify`.'
    ) else true end
    """,
)


def macros(kinds: Iterable[type[Problem]] = PROBLEMS) -> list[str]:
    """Return the statements that create the macros of these problems, with those of `compare` among them.

    `<problem>_at(field := value, ...)` gives one row: the best proved bracket, with its sources.
    `<problem>_noise(epsilon := value, ...)` gives the smallest stored noise whose upper end meets the target.
    `compare(...)` gives a row for each scheme of choosing the examples of a step.
    """
    made: dict[str, tuple[str, str]] = {}
    for kind in kinds:
        view, signature = view_name(kind.name), _signature(kind, ())
        made[f"{view}_ends"] = signature, ends(kind)
        made[f"{view}_at"] = signature, _at(kind)
        for name in NOISE:
            if name in kind.monotone and kind.asks not in kind.parameters:
                made[f"{view}_noise"] = _signature(kind, (name,)), _noise(kind, name)
    for short, long in SHORT.items():
        if long not in made:
            continue
        signature = made[long][0]
        names = re.findall(r"(\w+) :=", signature)
        made[short] = signature, f"from {_call(long, dict(zip(names, names, strict=True)))}"
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


def _asked(kind: type[Problem]) -> str:
    """Return the relation of one row with the question, checked and in the types of the fields.

    The user's expressions occur only here, where none of our names is in scope that could shadow theirs.
    """
    columns, checks = [], []
    for name, parameter in kind.parameters.items():
        given = f"given.{name}"
        checks.append(_check(name, parameter.domain, _condition(parameter, given)))
        columns.append(f"{_typed(parameter, given)} as {name}")
    every = [*kind.parameters, *sizes_of(kind)]
    names = ", ".join(every)
    given = f"(select {names}) as given({names})"
    # no `as` inside: later expressions would see such names
    if sampler_of(kind):
        given = given.replace(" as given(", " as raw(")
        given = f"(select {', '.join(sized(kind, name) for name in every)} from {given}) as given({names})"
        checks.insert(0, sound_sizes(kind))
    return f"(select {', '.join(columns)} from {given} where {' and '.join(checks)}) as asked"


def _check(name: str, domain: str, condition: str, relation: str = "given") -> str:
    expected = f"{name} in {domain}".replace("'", "''")
    return f"expected({relation}.{name}, {condition}, '{expected}')"


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


def _at(kind: type[Problem]) -> str:
    """Return the query for the bracket of a problem."""
    found = _call(f"{view_name(kind.name)}_ends", _same(kind))
    return f"""
        select '{kind.name}' as problem,
               coalesce(-found.low.bound, 0) as lower, coalesce(found.high.bound, 'inf') as upper,
               found.low.method as lower_method, found.high.method as upper_method,
               found.low.source as lower_from, found.high.source as upper_from,
               found.low.also as lower_also, found.high.also as upper_also,
               found.low.also_method as lower_also_method, found.high.also_method as upper_also_method,
               {_tables("found.low", "found.high")}
        from {found} as found
        where sound('{kind.name}', -found.low.bound, found.high.bound)"""


def _tables(*ends: str) -> str:
    """Return the column of the published tables from which rows of these ends came."""
    points = ", ".join(f"{end}.{point}" for end in ends for point in ("point", "also_point"))
    return f"tables_of([{points}]) as {IMPORTS}"


def _noise(kind: type[Problem], noise: str) -> str:
    """Return the query for the least stored noise whose upper end, also by convexity, meets the target.

    An end from two stored problems holds for the larger one of their noises.
    """
    target = f"as_double(target.{kind.asks})"
    check = _check(kind.asks, "[0, inf)", f"({target} >= 0 and {target} < 'inf'::double)", "target")
    values = f"(select list(distinct b.{noise}) from brackets.{view_name(kind.name)} as b)"
    # A question is checked also if no noise is stored.
    stored = f"(select unnest(coalesce({values}, [1]))) as stored({noise})"
    found = _call(f"{view_name(kind.name)}_ends", _same(kind) | {noise: f"stored.{noise}"})
    return f"""
        select '{kind.name}' as problem, found.least.noise as {noise}, found.least.upper as upper,
               found.least.high.method as upper_method, found.least.high.source as upper_from,
               found.least.high.also as upper_also, found.least.high.also_method as upper_also_method,
               {_tables("found.least.high")}
        from (
            select min({{
                'noise': greatest(high.source.{noise}, high.also.{noise}),
                'upper': high.bound, 'lower': low.bound, 'high': high
            }}) filter (high.bound <= {target}) as least
            from (select {kind.asks}) as target({kind.asks}), {stored}, {found} where {check}
        ) as found
        where found.least is not null and sound('{kind.name}', -found.least.lower, found.least.upper)"""


def _compare() -> str:
    """Return the query for several schemes at equal parameters; an inapplicable scheme has no row."""
    rows = []
    for kind in map(find_problem, COMPARED):
        once = kind.name == "shuffling-epsilon"
        other = SHUFFLED if once else COMPARED_WITH.get(kind.name, {})
        sizes = [] if kind.name in COMPARED_WITH else sizes_of(kind)
        given = {name: other.get(name, name) for name in (*kind.parameters, *sizes)}
        applies = "participations = 1" if once else "true"
        columns = f"problem, lower, upper, lower_method, upper_method, {IMPORTS}"
        call = _call(f"{view_name(kind.name)}_at", given)
        rows.append(f"select {columns} from (select {applies}) as scheme(applies), {call} where applies")
    return " union all ".join(rows)


def _same(kind: type[Problem]) -> dict[str, str]:
    """Return the arguments of a macro of a problem, each with its own name as its value."""
    return {name: name for name in (*kind.parameters, *sizes_of(kind))}


def _call(macro: str, given: Mapping[str, str]) -> str:
    """Return a call of a macro with these expressions as its arguments."""
    return f"{macro}({', '.join(f'{name} := {expression}' for name, expression in given.items())})"
