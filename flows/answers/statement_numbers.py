"""Numbers of a training run that a statement adds to epsilon: membership tests, and one example alone."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from flows.answers.run_phases import phases_of
from flows.answers.sourced import computed
from flows.printing import exactly, rounded_up
from privcore import Problem, find_problem
from privcore.training import Phase, written

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


def membership_tests(problem: Problem) -> MembershipTests:
    """Return bounds of the membership tests on the run of a problem about epsilon."""
    fields = {"phases": written(phases_of(problem)), "adjacency": problem.as_fields()["adjacency"]}
    return MembershipTests(
        powers={rate: _upper("run-tpr", fields | {"false_positive_rate": rate}) for rate in RATES},
        advantage=_upper("run-advantage", fields),
    )


def epsilon_of_one(problem: Problem) -> float | None:
    """Return an upper bound of epsilon for one example of an owner; None if every owner has one example."""
    run, fields = phases_of(problem), problem.as_fields()
    if all(phase.owned == 1 for phase in run):
        return None
    asked = {"phases": written(tuple(_alone(phase) for phase in run))}
    return _upper("run-epsilon", asked | {name: fields[name] for name in ("adjacency", "delta")})


def _alone(phase: Phase) -> Phase:
    """Return the phase for owners of one example."""
    return replace(phase, **({"group": 1} if "group" in phase.parameters else {}))


def _upper(name: str, fields: Mapping[str, Any]) -> float:
    return computed(find_problem(name).from_fields(fields)).bracket.upper
