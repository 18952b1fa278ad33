"""Numbers of a training run that a statement adds to epsilon: membership tests, and one example alone."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from flows.answers.run_phases import adjacency_of, phases_of
from flows.answers.sourced import computed
from flows.printing import exactly, rounded_up
from privcore import Problem, find_problem
from privcore.training import RELATIONS, Phase, written

RATES = (1e-3, 1e-2)
"""False positive rates of the membership tests in a statement."""


@dataclass(frozen=True, kw_only=True)
class MembershipTests:
    """Upper ends for every test of whether a unit of privacy was used.

    Attributes:
        powers: Largest true positive rate by false positive rate.
        advantage: Largest difference of the two rates.
    """

    powers: Mapping[float, float]
    advantage: float

    @property
    def sentence(self) -> str:
        """Text of the numbers, rounded up."""
        powers = " and ".join(
            f"{rounded_up(power)} at a false positive rate of {exactly(rate)}"
            for rate, power in self.powers.items()
        )
        return (
            f"a test of membership has a true positive rate of at most {powers}; the advantage of every test "
            f"is at most {rounded_up(self.advantage)}."
        )

    def as_content(self) -> dict[str, Any]:
        """Return the content of the JSON output."""
        powers = [
            {"false_positive_rate": rate, "largest_true_positive_rate": power}
            for rate, power in self.powers.items()
        ]
        return {"rates": powers, "largest_advantage": self.advantage}


def membership_tests(problem: Problem, limit_seconds: float) -> MembershipTests | None:
    """Return bounds of the membership tests on the run of a problem about epsilon; None without an answer.

    Tests of membership and tests of absence are bounded, so a direction of a relation counts as the relation.

    Args:
        problem: The problem.
        limit_seconds: As in `ask`, for each of the numbers.
    """
    relation = RELATIONS[adjacency_of(problem)]
    fields = {"phases": written(phases_of(problem)), "adjacency": relation}
    powers = {}
    for rate in RATES:
        power = _upper("run-tpr", fields | {"false_positive_rate": rate}, limit_seconds)
        if power is None:
            return None
        powers[rate] = power
    advantage = _upper("run-advantage", fields, limit_seconds)
    return None if advantage is None else MembershipTests(powers=powers, advantage=advantage)


def epsilon_of_one(problem: Problem, limit_seconds: float) -> float | None:
    """Return an upper bound of epsilon for one example of an owner; None if every owner has one example.

    Args:
        problem: The problem.
        limit_seconds: As in `ask`.
    """
    run, fields = phases_of(problem), problem.as_fields()
    if all(phase.owned == 1 for phase in run):
        return None
    asked = {"phases": written(tuple(_alone(phase) for phase in run))}
    known = {name: fields[name] for name in ("adjacency", "delta")}
    return _upper("run-epsilon", asked | known, limit_seconds)


def _alone(phase: Phase) -> Phase:
    """Return the phase for owners of one example."""
    return replace(phase, **({"group": 1} if "group" in phase.parameters else {}))


def _upper(name: str, fields: Mapping[str, Any], limit_seconds: float) -> float | None:
    """Return the upper end of a problem; None if no method gives one in time."""
    answer = computed(find_problem(name).from_fields(fields), limit_seconds=limit_seconds)
    return answer.bracket.upper if answer.ok and answer.bracket.upper_by else None
