"""Mistakes in sweeps, made systematically in a good sweep of each problem.

Classes of mistakes that no schema can express are listed, with the words of the reader about each.
"""

import json
import math
from collections.abc import Callable, Iterator
from datetime import date
from functools import cache
from itertools import islice
from random import Random
from typing import Any

from privcore import METHODS, PROBLEMS, answering, find, find_problem
from privcore.parameter import Choice, Integer, Parameter, Real, Text

Spec = dict[str, Any]
Mistake = Callable[[Spec, Random], None]
EACH = 3
"""Good sweeps in which each mistake is made."""


@cache
def good(name: str) -> str:
    """Return a sweep with one grid of a problem, as JSON: required fields, one value of each in a list."""
    kind = find_problem(name)
    required = {n: p for n, p in kind.parameters.items() if n not in kind.defaults()}
    product = {n: [p.typical_values()[0]] for n, p in required.items()}
    grid = {"problem": name, "methods": [m.name for m in answering(kind)], "product": product}
    return json.dumps({"name": "good", "title": "Good", "limits": {"point_seconds": 10}, "grid": [grid]})


def mistaken(mistake: Mistake, count: int = EACH) -> Iterator[Spec]:
    """Yield good sweeps of different problems with this mistake, as far as it can be made in them."""
    random = Random(mistake.__name__)

    def all_of_them() -> Iterator[Spec]:
        for kind in random.sample(PROBLEMS, len(PROBLEMS)):
            spec = json.loads(good(kind.name))
            try:
                mistake(spec, random)
            except LookupError:  # there is nothing in this sweep that can be mistaken so
                continue
            yield spec

    return islice(all_of_them(), count)


# ------------------------------------------------------------------------------------ parts of a sweep


def grid(spec: Spec) -> Spec:
    found: Spec = spec["grid"][0]
    return found


def product(spec: Spec) -> Spec:
    found: Spec = grid(spec)["product"]
    return found


def field(spec: Spec, *kinds: type[Parameter]) -> tuple[str, Any]:
    """Return a required field of one of these kinds, with its parameter."""
    parameters = find_problem(grid(spec)["problem"]).parameters
    return (
        next(((n, parameters[n]) for n in product(spec) if isinstance(parameters[n], kinds)), None) or fail()
    )


def fail() -> Any:
    raise LookupError


def option(spec: Spec, *kinds: type[Parameter]) -> tuple[str, str, Any]:
    """Return a method of the grid with an option of one of these kinds, and the parameter."""
    for name in grid(spec)["methods"]:
        for knob, parameter in find(name).knobs.items():
            if isinstance(parameter, kinds):
                return name, knob, parameter
    raise LookupError


def misspelt(word: str) -> str:
    return word[:-2] + word[-1]


MISTAKES: list[Mistake] = []


def setting(name: str, part: Callable[[Spec], Spec], key: str, value: Any) -> None:
    """Add the mistake of setting a key to a value; `...` removes the key."""

    def mistake(spec: Spec, _: Random) -> None:
        if value is ...:
            del part(spec)[key]
        else:
            part(spec)[key] = value

    mistake.__name__ = name
    MISTAKES.append(mistake)


def renaming(part: Callable[[Spec], Spec], key: str) -> None:
    def mistake(spec: Spec, _: Random) -> None:
        part(spec)[misspelt(key)] = part(spec).pop(key)

    mistake.__name__ = f"{key} misspelt"
    MISTAKES.append(mistake)


def valuing(name: str, value: Callable[[Any], Any], *kinds: type[Parameter]) -> None:
    """Add the mistake of giving a field of one of these kinds the value made of its parameter."""

    def mistake(spec: Spec, _: Random) -> None:
        n, parameter = field(spec, *kinds)
        made = value(parameter)
        if made is ...:
            raise LookupError
        product(spec)[n] = made

    mistake.__name__ = f"{name} for {' or '.join(kind.__name__ for kind in kinds)}"
    MISTAKES.append(mistake)


def opting(name: str, value: Callable[[Any], Any], *kinds: type[Parameter]) -> None:
    """Add the mistake of giving an option of one of these kinds the value made of its parameter."""

    def mistake(spec: Spec, _: Random) -> None:
        method, knob, parameter = option(spec, *kinds)
        grid(spec)["methods"] = [{"name": method, knob: value(parameter)}]

    mistake.__name__ = f"option: {name} for {' or '.join(kind.__name__ for kind in kinds)}"
    MISTAKES.append(mistake)


def whole(spec: Spec) -> Spec:
    return spec


def limits(spec: Spec) -> Spec:
    found: Spec = spec["limits"]
    return found


value: Any
for key in ("name", "title", "grid", "limits"):
    renaming(whole, key)
for key in ("problem", "methods", "product"):
    renaming(grid, key)
    if key != "product":
        setting(f"no {key}", grid, key, ...)
renaming(limits, "point_seconds")
setting("unknown key", whole, "baseline", 1)
setting("unknown key of a grid", grid, "filter", "sigma > 1")
for value in ("", "Good", "good sweep", "x" * 65, 7, True, ["good"]):
    setting(f"name {value!r}", whole, "name", value)
setting("no name", whole, "name", ...)
for value in (7, "x" * 201, "two\nlines", ["Good"]):
    setting(f"title {str(value)[:9]!r}", whole, "title", value)
for value in ([], {}, "quickstart", ["quickstart"], 1, [[]]):
    setting(f"grid {value!r}", whole, "grid", value)
setting("no grid", whole, "grid", ...)
setting("limits 60", whole, "limits", 60)
for value in ("60", 0, -1.0, 1e8, True, [60]):
    setting(f"point_seconds {value!r}", limits, "point_seconds", value)
for value in (1e5, 1e16, "2 GB"):
    setting(f"point_bytes {value!r}", limits, "point_bytes", value)
for value in ("nothing", "", 7, ["allocation-epsilon"], "allocation.certified"):
    setting(f"problem {value!r}", grid, "problem", value)
for value in (
    [], {}, 7, "allocation.certified", ["nothing"], [""], [7], [["allocation.certified"]], [{}],
    [{"name": "nothing"}], [{"name": 7}], [{"tolerance": 0.1}],
):  # fmt: skip
    setting(f"methods {value!r}", grid, "methods", value)
for value in (7, "", "sigma > " + "0" * 300, True, ["sigma > 1"]):
    setting(f"where {str(value)[:12]!r}", grid, "where", value)
for value in ([], "sigma", 7):
    setting(f"product {value!r}", grid, "product", value)
    setting(f"zip {value!r}", grid, "zip", value)
setting("an unknown field in zip", grid, "zip", {"nothing": [1]})

valuing("text", lambda _: "one", Real, Integer)
valuing("truth", lambda _: True, Real, Integer)
valuing("truth", lambda _: True, Choice, Text)
valuing("truth in a list", lambda p: [p.typical_values()[0], True], Real, Integer, Choice, Text)
valuing("date", lambda _: date(2026, 1, 1), Real, Integer, Text)
valuing("empty list", lambda _: [], Real, Integer, Choice, Text)
valuing("nested list", lambda p: [[p.typical_values()[0]]], Real, Integer, Choice, Text)
valuing("too small", lambda p: p.lower - 1.0, Real, Integer)
valuing("too large", lambda p: [2.0 * p.upper + 1.0], Real, Integer)
valuing("excluded end", lambda p: p.lower if p.lower_open else ..., Real)
valuing("fraction", lambda p: p.lower + 0.5, Integer)
valuing("fraction in a list", lambda p: [p.lower, p.lower + 0.5], Integer)
valuing("unknown word", lambda _: "nothing", Choice)
valuing("number", lambda _: 1, Choice)
valuing("rule", lambda _: {"linear": [1, 2, 3]}, Choice, Text)
valuing("infinity", lambda p: ... if p.infinite else math.inf, Real)
valuing("empty table", lambda _: {}, Real, Integer)


def ruled(p: Any, rule: str, third: float) -> Any:
    """Return a rule whose ends are in the domain of a number."""
    return {rule: [p.lower + (p.upper - p.lower) / 4, p.upper - 1 if p.upper > 3 else p.upper / 2, third]}


def whole_rule(p: Any, rule: str, third: float) -> Any:
    return {rule: [max(p.lower, 1), p.upper, third]}


valuing("unknown rule", lambda p: {"logarithmic": ruled(p, "linear", 3)["linear"]}, Real, Integer)
valuing("two rules", lambda p: ruled(p, "linear", 3) | ruled(p, "geometric", 3), Real)
valuing("two numbers", lambda p: {"linear": [p.lower, p.upper]}, Real, Integer)
valuing("four numbers", lambda p: {"linear": [1, 2, 3, 4]}, Real, Integer)
valuing("a rule of text", lambda p: {"linear": ["1", "2", "3"]}, Real, Integer)
valuing("a rule of one number", lambda p: {"linear": 3}, Real, Integer)
valuing("rule with truth", lambda p: {"range": [p.lower, p.upper, True]}, Real, Integer)
valuing("linear, one value", lambda p: ruled(p, "linear", 1), Real)
valuing("geometric, 2.5 values", lambda p: whole_rule(p, "geometric", 2.5), Integer)
valuing("linear below", lambda p: {"linear": [p.lower - 1, p.upper, 3]}, Real, Integer)
valuing("geometric above", lambda p: {"geometric": [p.lower, 2 * p.upper + 1, 3]}, Real, Integer)
valuing("range above", lambda p: {"range": [p.lower, 2 * p.upper + 1, 3]}, Real, Integer)
valuing("geometric from 0", lambda p: {"geometric": [0, p.upper, 3]}, Real, Integer)
valuing("step 0", lambda p: ruled(p, "range", 0), Real)
valuing("step -1", lambda p: whole_rule(p, "range", -1), Integer)
valuing("step 0.5", lambda p: whole_rule(p, "range", 0.5), Integer)
valuing("fraction as an end", lambda p: {"linear": [p.lower + 0.5, p.upper, 3]}, Integer)

opting("text", lambda _: "one", Real, Integer)
opting("truth", lambda _: True, Real, Integer)
opting("list", lambda p: [p.typical_values()[0]], Real, Integer, Choice)
opting("too small", lambda p: p.lower - 1, Real, Integer)
opting("too large", lambda p: 2 * p.upper + 1, Real, Integer)
opting("fraction", lambda p: p.lower + 0.5, Integer)
opting("unknown word", lambda _: "nothing", Choice)


def a_method_of_another_problem(spec: Spec, random: Random) -> None:
    others = [m.name for m in METHODS if m.name not in grid(spec)["methods"]]
    grid(spec)["methods"].append(random.choice(others))


def a_table_of_another_problems_method(spec: Spec, random: Random) -> None:
    others = [m.name for m in METHODS if m.name not in grid(spec)["methods"]]
    grid(spec)["methods"] = [{"name": random.choice(others)}]


def a_misspelt_method(spec: Spec, random: Random) -> None:
    grid(spec)["methods"] = [misspelt(random.choice(grid(spec)["methods"]))]


def a_misspelt_problem(spec: Spec, _: Random) -> None:
    grid(spec)["problem"] = misspelt(grid(spec)["problem"])


def another_problem(spec: Spec, random: Random) -> None:
    names = set(product(spec))
    others = [k.name for k in PROBLEMS if not names <= set(k.parameters)]
    grid(spec)["problem"] = random.choice(others)


def a_method_twice(spec: Spec, _: Random) -> None:
    grid(spec)["methods"] *= 2


def a_misspelt_option(spec: Spec, _: Random) -> None:
    name, knob, parameter = option(spec, Real, Integer, Choice)
    grid(spec)["methods"] = [{"name": name, misspelt(knob): parameter.typical_values()[0]}]


def an_option_of_another_method(spec: Spec, random: Random) -> None:
    name = random.choice(grid(spec)["methods"])
    knob = random.choice(sorted({k for m in METHODS for k in m.knobs} - set(find(name).knobs)))
    grid(spec)["methods"] = [{"name": name, knob: 1}]


def a_misspelt_field(spec: Spec, random: Random) -> None:
    name = random.choice(list(product(spec)))
    product(spec)[misspelt(name)] = product(spec).pop(name)


def a_field_of_another_problem(spec: Spec, random: Random) -> None:
    own = find_problem(grid(spec)["problem"]).parameters
    name, parameter = random.choice(
        [(n, p) for k in PROBLEMS for n, p in k.parameters.items() if n not in own]
    )
    product(spec)[name] = [parameter.typical_values()[0]]


def a_missing_field(spec: Spec, random: Random) -> None:
    del product(spec)[random.choice(list(product(spec)))]


def a_field_in_both_tables(spec: Spec, random: Random) -> None:
    name = random.choice(list(product(spec)))
    grid(spec)["zip"] = {name: product(spec)[name]}


def a_field_in_both_tables_and_another_missing(spec: Spec, random: Random) -> None:
    if len(product(spec)) < 2:
        raise LookupError
    first, second = random.sample(list(product(spec)), 2)
    grid(spec)["zip"] = {first: product(spec)[first]}
    del product(spec)[second]


def no_product(spec: Spec, _: Random) -> None:
    del grid(spec)["product"]


def a_second_grid_that_is_empty(spec: Spec, _: Random) -> None:
    spec["grid"].append({})


MISTAKES += [
    a_method_of_another_problem, a_table_of_another_problems_method, a_misspelt_method, a_misspelt_problem,
    another_problem, a_method_twice, a_misspelt_option, an_option_of_another_method, a_misspelt_field,
    a_field_of_another_problem, a_missing_field, a_field_in_both_tables,
    a_field_in_both_tables_and_another_missing, no_product, a_second_grid_that_is_empty,
]  # fmt: skip


# --------------------------------------------------------------------- beyond any schema


def where(text: str) -> Mistake:
    def mistake(spec: Spec, _: Random) -> None:
        grid(spec)["where"] = text

    mistake.__name__ = f"where {text}"
    return mistake


def lists_of_different_length(spec: Spec, _: Random) -> None:
    names = list(product(spec))
    grid(spec)["zip"] = {name: product(spec).pop(name) * (k + 1) for k, name in enumerate(names)}
    if len(names) < 2:
        raise LookupError


def ends_in_the_wrong_order(spec: Spec, _: Random) -> None:
    name, parameter = field(spec, Integer)
    product(spec)[name] = {"linear": [parameter.upper, parameter.lower, 3]}


def a_text_of_another_grammar(spec: Spec, _: Random) -> None:
    name, _ = field(spec, Text)
    product(spec)[name] = "betta(2,30)"


def not_a_number(spec: Spec, _: Random) -> None:
    name, _ = field(spec, Real)
    product(spec)[name] = math.nan


def zero_with_a_sign(spec: Spec, _: Random) -> None:
    for name in product(spec):
        parameter: Any = find_problem(grid(spec)["problem"]).parameters[name]
        if (
            isinstance(parameter, Real | Integer)
            and parameter.lower <= 0
            and not getattr(parameter, "lower_open", 0)
        ):
            product(spec)[name] = [-0.0]
            return
    raise LookupError


def a_number_too_near_to_zero(spec: Spec, _: Random) -> None:
    name, parameter = field(spec, Real)
    if parameter.lower > 0:
        raise LookupError
    product(spec)[name] = 5e-324


def an_invisible_letter(spec: Spec, _: Random) -> None:
    spec["title"] = "Good\u200b"


TEXTS = sorted({n for kind in PROBLEMS for n, p in kind.parameters.items() if isinstance(p, Text)})
BEYOND: dict[str, tuple[list[Mistake], str]] = {
    # class: (mistakes, words of the reader about them)
    "the text of a condition": (
        [where("steps <"), where("nothing > 1"), where("1 + 1"), where("len(1) > 0"), where(" ")],
        r": where: ",
    ),
    "lists in zip of the same length": ([lists_of_different_length], r": zip: .* values of each"),
    "the first value of a rule below the last": (
        [ends_in_the_wrong_order],
        r"the first value below the last",
    ),
    "the grammar of a text": (
        [a_text_of_another_grammar],
        rf": (product|zip)\.({'|'.join(TEXTS)}): Expected ",
    ),
    "numbers that JSON does not have": (
        [not_a_number, zero_with_a_sign, a_number_too_near_to_zero],
        r"=(nan|-0\.0|5e-324)\.$",
    ),
    "letters that cannot be printed": ([an_invisible_letter], r": title: "),
}
