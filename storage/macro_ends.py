"""Queries for the ends of a bracket: the best corners of a question, and chords between stored deltas.

They search the brackets, and give the same bits as `storage.lookup`.
"""

from privcore.numerics.profile_chord import LARGEST_FALL, LARGEST_LOSS, LARGEST_RATIO, LARGEST_RISE, TERMS
from privcore.numerics.rounding import PROFILE_CHORD, SHORT_FORMULA
from privcore.problem import Problem
from storage.chords import NEAREST
from storage.monotone_index import relation
from storage.views import quoted_product, view_name

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


def ends(kind: type[Problem], asked: str, carried: str = "") -> str:
    """Return a query with the columns `low` and `high`: each is a struct, or null without a bound.

    Its members are `bound`, which is the end, or its negative for a lower end; `method`, `source` and
    `point`, those of the stored problem; and `also_method`, `also` and `also_point`, those of a second one if
    the end follows from two.

    Args:
        kind: The problem.
        asked: The relation with the questions, named `asked`.
        carried: A column of this relation that the query returns too.
    """
    also = f", {carried}" if carried else ""
    if not kind.exp_convex:
        low, high = (
            f"(select min({_corner(kind, end)}) {_corners(kind, end)})" for end in ("lower", "upper")
        )
        none = "also := null, also_method := null, also_point := null::varchar"
        return f"""
            select case when low is not null then struct_insert(low, {none}) end as low,
                   case when high is not null then struct_insert(high, {none}) end as high{also}
            from (select {low} as low, {high} as high{also} from {asked})"""
    (name,) = kind.exp_convex
    by_value = {
        end: f"""(
            select list(best.corner) from (
                select min({_corner(kind, end)}) as corner {_corners(kind, end, name)} group by b.{name}
            ) as best)"""
        for end in ("lower", "upper")
    }
    return f"""
        select {_better("low", "0")} as low, {_better("high", "'inf'::double")} as high{also}
        from (
            select low, high, {_chord_below()} as low_chord, {_chord_above()} as high_chord{also}
            from (
                select place, {_best("lows", name, ">=", "place")} as low,
                       {_best("highs", name, "<=", "place")} as high,
                       {_each("lows", name, ">=")} as lows, {_each("highs", name, "<=")} as highs{also}
                from (
                    select asked.{name} as place, {_nearby(kind, name)} as nearby,
                           {by_value["lower"]} as lows, {by_value["upper"]} as highs{also}
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


def _chord_above() -> str:
    """Return the best chord above the question, from two corners as in `epsilon_above`."""
    return f"""(
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
    )"""


def _chord_below() -> str:
    """Return the best extended chord below the question, from two corners as in `epsilon_below`."""
    return f"""(
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
    )"""


def _better(end: str, nothing: str) -> str:
    """Return the corner or the chord, with the smaller bound, as the struct that `ends` describes."""
    chord = f"{end}_chord"
    return f"""
        case when {chord}.bound < coalesce({end}.bound, {nothing})
        then {{'bound': {chord}.bound, 'method': {chord}.near.method, 'source': {chord}.near.source,
               'also': {chord}.far.source, 'also_method': {chord}.far.method,
               'point': {chord}.near.point, 'also_point': {chord}.far.point}}
        when {end} is not null
        then {{'bound': {end}.bound, 'method': {end}.method, 'source': {end}.source,
               'also': null, 'also_method': null, 'point': {end}.point, 'also_point': null}} end"""
