"""Exact zeros of advantages, against enumeration in rational numbers; impossible releases are refused."""

import itertools
import math
from fractions import Fraction

import pytest

from flows.answers.ask import ask
from flows.answers.labels import LabelComparison, equal_bag_size
from privcore import DomainError, Point, Status, evaluate, find, find_problem, methods_for
from privcore.labels.bag_problems import BagPosterior, ClassAdvantage


def enumerated(etas: list[Fraction], odds: Fraction) -> Fraction:
    """Return the mean advantage over a bag with geometric noise (unclipped sums differ by a post-processing).

    The release is the sum with two-sided geometric noise, clipped to {0, ..., k}; odds is e^epsilon.
    """
    k, r = len(etas), 1 / odds

    def noisy(s: int, z: int) -> Fraction:
        inside = (1 - r) / (1 + r) * r ** abs(z - s)
        return inside / (1 - r) if z in (0, k) else inside

    total = Fraction(0)
    for j, eta in enumerate(etas):
        given = {y: [Fraction(0)] * (k + 1) for y in (0, 1)}
        others = etas[:j] + etas[j + 1 :]
        for labels in itertools.product((0, 1), repeat=k - 1):
            weight = Fraction(1)
            for label, p in zip(labels, others, strict=True):
                weight *= p if label else 1 - p
            for y in (0, 1):
                for z in range(k + 1):
                    given[y][z] += weight * noisy(sum(labels) + y, z)
        best = sum(
            (max(eta * one, (1 - eta) * no) for no, one in zip(*given.values(), strict=True)), Fraction(0)
        )
        total += best - max(eta, 1 - eta)
    return total / k


@pytest.mark.parametrize("odds", [Fraction(3, 2), Fraction(3), Fraction(20)])
def test_the_advantage_is_zero_only_if_enumeration_says_so(odds: Fraction) -> None:
    for etas in (["1/10", "9/10", "1/5"], ["3/10", "3/10"], ["0", "1", "0"], ["1/4", "0"], ["1/100", "1/2"]):
        bag = [Fraction(eta) for eta in etas]
        fields = {
            "mechanism": "llp-geometric",
            "bag": ",".join(str(float(eta)) for eta in bag),
            "label_epsilon": math.log(odds),
        }
        problem = find_problem("label-bag-advantage").from_fields(fields)
        found = evaluate(Point(problem=problem, method=find("labels.unchanged")()))
        truth = enumerated(bag, odds)
        if found.ok:
            assert truth == 0
            assert (found.lower, found.upper) == (0.0, 0.0)
        else:
            assert found.status is Status.NOT_APPLICABLE
            assert max(min(eta, 1 - eta) / max(eta, 1 - eta) for eta in bag) * odds >= 1
        assert ask(problem).lower <= truth <= ask(problem).upper


@pytest.mark.parametrize(("member", "zero"), [(1, True), (2, True), (3, False)])
def test_the_advantage_on_one_member_is_zero_if_no_release_changes_the_guess(member: int, zero: bool) -> None:
    """The third label has the probability 0.49, so that a factor of e^0.1 changes the guess."""
    fields = {"mechanism": "llp-geometric", "bag": "0.1,0.2,0.49", "label_epsilon": 0.1, "member": member}
    found = ask(find_problem("label-member-advantage").from_fields(fields))
    assert (found.upper == 0.0) is zero
    assert (found.lower > 0.0) is not zero


def test_zeros_are_exact_and_one_example_may_suffice() -> None:
    comparison = LabelComparison(prior="point(0)")
    assert comparison.response("advantage", 1.0).bracket.upper == 0.0
    assert comparison.bags("advantage", 8).value == 0.0
    assert equal_bag_size(comparison, "advantage", 1.0).value == 1
    assert LabelComparison(prior="point(0.3)").response("advantage", 0.5).value == 0.0
    assert LabelComparison(prior="point(0.3)").response("advantage", 0.9).value > 0.0


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "bag", "released", "possible"),
    [
        ("llp", math.inf, "0.5,0.5,0", 3.0, False),
        ("llp", math.inf, "0.5,0.5,0", 2.0, True),
        ("llp", math.inf, "0.5,1,1", 1.0, False),
        ("llp-geometric", 1.0, "0.5,0.5,0", 3.0, True),
        ("llp-laplace", 1.0, "0,0", 7.5, True),
    ],
)
def test_a_question_about_an_impossible_release_is_refused(
    mechanism: str, epsilon: float, bag: str, released: float, possible: bool
) -> None:
    fields = {"mechanism": mechanism, "bag": bag, "released": released, "label_epsilon": epsilon, "member": 1}
    if possible:
        assert BagPosterior.asked(fields).released == released
        return
    with pytest.raises(DomainError, match="are 0 for certain, got"):
        BagPosterior.asked(fields)
    problem = BagPosterior.from_fields(fields)
    assert problem.released == released, "rows of stores stay readable"
    for method in methods_for(problem):
        found = evaluate(Point(problem=problem, method=method()))
        assert found.status is Status.NOT_APPLICABLE
        assert "for certain, got" in found.detail


def test_classes_list_only_the_mechanisms_that_are_answered() -> None:
    mechanisms = ClassAdvantage.parameters["mechanism"]
    for word in mechanisms.typical_values():
        epsilon = 1.0 if word == "rr" else math.inf
        fields = {"mechanism": word, "classes": "0.2,0.3,0.5", "label_epsilon": epsilon}
        assert ask(find_problem("class-advantage").from_fields(fields)).ok
    assert mechanisms.domain == "{none, rr, llp}"


RESPONSE = {"mechanism": "rr", "label_epsilon": 0.1}
LAPLACE = {"mechanism": "llp-laplace"}
BAGS = {"mechanism": "llp-geometric", "label_epsilon": 0.1, "bag_size": 2}


@pytest.mark.parametrize(
    ("problem", "method", "fields"),
    [
        ("label-advantage", "labels.response", RESPONSE | {"prior": "point(0.2)"}),
        ("label-advantage-at", "labels.response", RESPONSE | {"prior": "uniform", "eta": 0.2}),
        ("label-advantage-tail", "labels.response", RESPONSE | {"prior": "point(0.2)", "threshold": 0.1}),
        ("label-advantage", "labels.composition", BAGS | {"prior": "two-point(0.01,0.9,0.5)"}),
        ("label-advantage-at", "labels.composition", BAGS | {"prior": "point(0.4)", "eta": 0.2}),
        ("label-advantage-tail", "labels.composition", BAGS | {"prior": "point(0.2)", "threshold": 0.1}),
        (
            "label-advantage",
            "labels.composition",
            BAGS | {"mechanism": "llp-laplace", "prior": "point(0.01)"},
        ),
    ],
)
def test_every_method_that_sweeps_use_has_exact_zeros(
    problem: str, method: str, fields: dict[str, float | str]
) -> None:
    found = evaluate(Point(problem=find_problem(problem).from_fields(fields), method=find(method)()))
    assert (found.lower, found.upper) == (0.0, 0.0)


@pytest.mark.parametrize("prior", ["uniform", "beta(2,5)", "logit-normal(0,1)", "two-point(0.2,0.7,0.5)"])
@pytest.mark.parametrize(
    ("problem", "fields"),
    [
        ("label-advantage", {}),
        ("label-advantage-at", {"eta": 0.4}),
        ("label-advantage-tail", {"threshold": 0.0}),
        ("label-advantage-tail", {"threshold": 0.3, "bags": 5}),
    ],
)
def test_no_release_has_no_advantage_for_any_prior(
    problem: str, fields: dict[str, float], prior: str
) -> None:
    asked = find_problem(problem).from_fields({"mechanism": "none", "prior": prior, **fields})
    found = evaluate(Point(problem=asked, method=find("labels.response")()))
    assert (found.lower, found.upper) == (0.0, 0.0)
    blind = find_problem("label-attack-accuracy").from_fields({"mechanism": "none", "prior": "uniform"})
    accuracy = evaluate(Point(problem=blind, method=find("labels.response")()))
    assert accuracy.lower <= 0.75 <= accuracy.upper < 0.7501
