"""One member of a known bag, and the values that a bag releases, against enumeration with fractions."""

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

from privcore import Answer, DomainError, Point, evaluate, find, find_problem

BAGS = ["0.2;0.5;0.8", "0;0.5;1;0.3", "0.9;0.01", "0.4"]
EXACT = Fraction(1, 10**12)


def answered(problem: str, **fields: Any) -> Answer:
    asked = find_problem(problem).from_fields(fields)
    return evaluate(Point(problem=asked, method=find("labels.member")()))


def kernel(k: int, s: int, epsilon: float) -> list[Fraction]:
    """Probabilities of the clipped noisy counts 0, ..., k of s labels, or the count itself without noise."""
    if math.isinf(epsilon):
        return [Fraction(u == s) for u in range(k + 1)]
    r = Fraction(math.exp(-epsilon))
    inside = [(1 - r) / (1 + r) * r ** abs(u - s) for u in range(k + 1)]
    return [r**s / (1 + r), *inside[1:k], r ** (k - s) / (1 + r)]


def joint(etas: list[Fraction], member: int, epsilon: float) -> list[tuple[Fraction, Fraction]]:
    """Probabilities of every released count together with label 0 and with label 1 of the member."""
    k = len(etas)
    found = [[Fraction(0), Fraction(0)] for _ in range(k + 1)]
    for labels in itertools.product((0, 1), repeat=k):
        weight = math.prod((e if y else 1 - e for e, y in zip(etas, labels, strict=True)), start=Fraction(1))
        for u, chance in enumerate(kernel(k, sum(labels), epsilon)):
            found[u][labels[member]] += weight * chance
    return [(zero, one) for zero, one in found]


@pytest.mark.parametrize("bag", BAGS)
@pytest.mark.parametrize("epsilon", [math.inf, 0.5, 3.0])
def test_answers_are_those_of_an_enumeration_of_all_labels(bag: str, epsilon: float) -> None:
    etas = [Fraction(float(text)) for text in bag.split(";")]
    mechanism = "llp" if math.isinf(epsilon) else "llp-geometric"
    asked = {"mechanism": mechanism, "bag": bag.replace(";", ","), "label_epsilon": epsilon}
    for member, eta in enumerate(etas):
        table = joint(etas, member, epsilon)
        truth = sum(max(pair) for pair in table) - max(eta, 1 - eta)
        found = answered("label-member-advantage", member=member + 1, **asked)
        assert Fraction(found.lower) - EXACT <= truth <= Fraction(found.upper) + EXACT
        assert found.upper - found.lower <= 1e-12
    for value, pair in enumerate(joint(etas, 0, epsilon)):
        found = answered("label-release-probability", released=value, **asked)
        # the ratio of the noise is rounded once in the enumeration
        assert Fraction(found.lower) * (1 - EXACT) <= sum(pair) <= Fraction(found.upper) * (1 + EXACT)
        assert found.upper - found.lower <= 1e-12 * found.upper + 1e-250


def test_impossible_sums_and_certain_labels_have_exact_zeros() -> None:
    certain = {"mechanism": "llp", "bag": "0,0.5,1"}
    assert answered("label-release-probability", released=0, **certain).upper == 0.0
    assert answered("label-release-probability", released=3, **certain).upper == 0.0
    assert answered("label-member-advantage", member=3, **certain).upper == 0.0


def test_members_average_to_the_advantage_of_the_bag() -> None:
    asked = {"mechanism": "llp-laplace", "bag": "0.2,0.5,0.8", "label_epsilon": 1.0}
    members = [answered("label-member-advantage", member=j, **asked) for j in (1, 2, 3)]
    whole = find_problem("label-bag-advantage").from_fields(asked)
    mean = evaluate(Point(problem=whole, method=find("labels.bag")()))
    assert sum(each.lower for each in members) / 3.0 <= mean.upper
    assert mean.lower <= sum(each.upper for each in members) / 3.0
    assert members[0].upper < members[1].lower, "eta 1/2 reveals most"


def test_randomized_response_flips_with_its_probability() -> None:
    asked = {"mechanism": "rr", "bag": "0.3", "label_epsilon": math.log(3.0)}
    found = answered("label-release-probability", released=1, **asked)
    assert found.lower <= 0.3 * 0.75 + 0.7 * 0.25 <= found.upper
    assert answered("label-member-advantage", **asked).upper == pytest.approx(0.3 - 0.25, rel=1e-12)


@pytest.mark.parametrize(
    ("problem", "fields", "sentence"),
    [
        ("label-member-advantage", {"member": 4}, r"Expected member in \{1, ..., 3\}, got member=4\."),
        (
            "label-release-probability",
            {"released": 4},
            r"Expected released in \{0, ..., 3\} for llp, got 4\.",
        ),
        (
            "label-release-probability",
            {"released": 1, "mechanism": "none", "bag": "0.2"},
            "got mechanism=none",
        ),
    ],
)
def test_questions_that_make_no_sense_are_refused(
    problem: str, fields: dict[str, str | float], sentence: str
) -> None:
    with pytest.raises(DomainError, match=sentence):
        find_problem(problem).from_fields({"mechanism": "llp", "bag": "0.2,0.5,0.8"} | fields)
