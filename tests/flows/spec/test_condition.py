"""Conditions: their meaning, and the rejection of everything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.spec.condition import LONGEST, condition
from privcore import PrivsweepError, find_problem
from privcore.errors import DomainError
from privcore.parameter import Value

PARAMETERS = find_problem("unamplified-epsilon").parameters
FIELDS: dict[str, Value] = {
    "sigma": 2.0,
    "delta": 1e-5,
    "steps": 10,
    "participations": 3,
    "epochs": 1,
    "adjacency": "add",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("participations <= steps", True),
        ("1 < participations < 3", False),
        ("sigma == 2 and not steps != 10", True),
        ("adjacency == 'add' or sigma > 5", True),
        ("adjacency != 'add'", False),
        ("steps % 4 == 2", True),
        ("steps // 4 * 2 - -1 == 5", True),
        ("sigma ** 2 / 8 == 0.5", True),
        ("(steps - 1) / participations == 3.0", True),
    ],
)
def test_a_condition_means_what_python_means(text: str, expected: bool) -> None:
    assert condition(text, PARAMETERS).holds(FIELDS) is expected


@given(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), st.integers(1, 20), st.integers(1, 20))
def test_comparisons_agree_with_python(operator: str, participations: int, steps: int) -> None:
    text = f"participations {operator} steps"
    fields = FIELDS | {"participations": participations, "steps": steps}
    assert condition(text, PARAMETERS).holds(fields) is eval(text, {}, fields)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "steps",
        "'add'",
        "steps <",
        "steps = 1",
        "true",
        "stepps > 1",
        "__import__('os').system('true')",
        "steps.real > 1",
        "steps[0] > 1",
        "[1] == [1]",
        "(lambda: 1)() == 1",
        "steps in (1, 2)",
        "steps is 1",
        "steps if sigma > 1 else sigma",
        "f'{steps}' == 'x'",
        "adjacency > 1",
        "adjacency * 9 == 'add'",
        "'%99999999d' % steps == 'x'",
        "steps & 1 == 1",
        "~steps == 1",
        "True == True",
        "None == None",
        "1j == 1",
        "steps == 1e999",
        "not steps",
        "steps and sigma",
        "(steps > 1) > 0",
        "x := 1",
        "steps > 1; sigma > 1",
        "b'x' == b'x'",
        "1 == 1" + " " * LONGEST,
        "steps == \x00",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(PrivsweepError) as caught:
        condition(text, PARAMETERS)
    assert "\n" not in str(caught.value)


def test_what_is_deep_or_grows_is_harmless() -> None:
    assert condition("(" * 140 + "steps == 10" + ")" * 140, PARAMETERS).holds(FIELDS)
    assert condition("not " * 70 + "steps == 10", PARAMETERS).holds(FIELDS)
    assert not condition("2 ** 3 ** 2 ** 1 == 1", PARAMETERS).holds(FIELDS)


@pytest.mark.parametrize("text", ["1 / (steps - 10) > 0", "9.0 ** 9 ** 9 > 1", "(0 - sigma) ** 0.5 > 1"])
def test_a_condition_without_a_value_names_the_point(text: str) -> None:
    with pytest.raises(
        DomainError, match=r"Expected a condition that can be computed at sigma=2\.0, delta=1e-05"
    ):
        condition(text, PARAMETERS).holds(FIELDS)
