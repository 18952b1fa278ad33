"""Values outside a declared domain are rejected with one sentence; other values become canonical."""

import random
from fractions import Fraction

import numpy as np
import pytest

from privcore import METHODS, PROBLEMS, DomainError, Method, Problem, UnknownNameError
from privcore.errors import unknown
from privcore.parameter import Choice, Integer, Parameter, Real, Text
from tests.privcore.draws import draw_problem, draw_value, ends, outside

PARAMETERS: dict[str, Parameter] = {}
for _kind in PROBLEMS:
    PARAMETERS |= _kind.parameters
for _method in METHODS:
    PARAMETERS |= _method.knobs

each_parameter = pytest.mark.parametrize("parameter", PARAMETERS.values(), ids=PARAMETERS.keys())
each_problem = pytest.mark.parametrize("kind", PROBLEMS, ids=lambda kind: kind.name)
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


def is_one_sentence(text: str) -> bool:
    return "\n" not in text and text[:1].isupper() and text.endswith(".") and len(text) < 320


@each_parameter
def test_a_value_outside_the_domain_is_refused_with_its_name_and_domain(parameter: Parameter) -> None:
    for value in (*outside(parameter), np.bool_(True), np.float64("nan")):
        with pytest.raises(DomainError) as refusal:
            parameter.check(value)
        assert is_one_sentence(str(refusal.value)), value
        assert str(refusal.value).startswith(f"Expected {parameter.name} in {parameter.domain}, got "), value


@each_problem
def test_every_field_of_a_problem_refuses_what_its_parameter_refuses(kind: type[Problem]) -> None:
    fields = draw_problem(kind, random.Random(1)).as_fields()
    for name, parameter in kind.parameters.items():
        for value in outside(parameter):
            with pytest.raises(DomainError) as refusal:
                kind.from_fields(fields | {name: value})
            assert is_one_sentence(str(refusal.value)), (name, value)


@each_method
def test_every_knob_of_a_method_refuses_what_its_parameter_refuses(method: type[Method]) -> None:
    for name, parameter in method.knobs.items():
        for value in outside(parameter):
            with pytest.raises(DomainError):
                method.from_knobs({name: value})


@each_parameter
def test_ends_and_typical_values_are_accepted_unchanged(parameter: Parameter) -> None:
    values = list(parameter.typical_values())
    if isinstance(parameter, Real | Integer):
        values += ends(parameter)
    for value in values:
        checked = parameter.check(value)
        assert checked == value
        assert type(checked) is (str if isinstance(parameter, Choice | Text) else type(value))


@each_parameter
def test_every_draw_lies_in_the_domain(parameter: Parameter) -> None:
    rng = random.Random(2)
    for _ in range(200):
        value = draw_value(parameter, rng, wild=True)
        assert parameter.check(value) == value


@each_parameter
def test_numbers_of_other_types_become_plain_ones(parameter: Parameter) -> None:
    if isinstance(parameter, Integer):
        least = parameter.lower
        for whole in (float(least), np.int64(least), np.float32(least), Fraction(least)):
            count = parameter.check(whole)
            assert count == least
            assert type(count) is int
        assert parameter.check(float(parameter.upper)) == parameter.upper
    elif isinstance(parameter, Real):
        for same in (np.float64(0.5), np.float32(0.5), Fraction(1, 2)):
            checked = parameter.check(same)
            assert checked == 0.5
            assert type(checked) is float


@each_parameter
def test_a_parameter_says_what_it_means(parameter: Parameter) -> None:
    assert parameter.meaning[0].isupper()
    assert parameter.symbol
    assert parameter.unit
    domain = parameter.domain.removesuffix(" or inf")
    assert domain[0] + domain[-1] in ("[]", "[)", "(]", "()", "{}")
    assert parameter.name in PARAMETERS
    assert PARAMETERS[parameter.name] is parameter, "one name, one parameter"


@each_problem
def test_a_misspelt_or_missing_field_is_named(kind: type[Problem]) -> None:
    fields = draw_problem(kind, random.Random(3)).as_fields()
    for name in kind.parameters:
        misspelt = {(key + "s" if key == name else key): value for key, value in fields.items()}
        with pytest.raises(UnknownNameError, match=f"Did you mean {name}"):
            kind.from_fields(misspelt)
        if name in kind.defaults():
            continue
        with pytest.raises(DomainError, match=f"Expected {name} for {kind.name}"):
            kind.from_fields({key: value for key, value in fields.items() if key != name})


def test_a_name_of_two_kinds_is_listed_once() -> None:
    assert str(unknown("name", "zzz", ["b", "a", "b"])) == "Unknown name zzz. Known: a, b."


@each_method
def test_an_unknown_knob_is_refused(method: type[Method]) -> None:
    with pytest.raises(UnknownNameError, match=f"Unknown option of {method.name} no_such_knob"):
        method.from_knobs({"no_such_knob": 1})


@each_problem
def test_fields_survive_the_round_trip(kind: type[Problem]) -> None:
    rng = random.Random(4)
    for _ in range(20):
        problem = draw_problem(kind, rng, wild=0.5)
        assert kind.from_fields(problem.as_fields()) == problem
        assert kind.from_fields(problem.identity()) == problem
        assert list(problem.as_fields()) == list(kind.parameters)
