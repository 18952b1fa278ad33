"""The profile of one training run: every number with both ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privcore.errors import DomainError
from privcore.likelihood_ratio.profile import DIRECTIONS
from privcore.likelihood_ratio.questions import (
    AdvantageQuestion,
    MuQuestion,
    PowerQuestion,
    Question,
    RateQuestion,
    accuracy_bounds,
    accuracy_question,
    precision_bounds,
)
from privcore.method import Method
from privcore.params import DELTA, EPSILON
from privcore.registry import find_problem
from privcore.training import params as training_params
from privcore.training.brackets import Ends, Profile
from privcore.training.certified import RunsCertified, RunsCurves
from privcore.training.curve_problems import RunAdvantage
from privcore.training.phase import RELATIONS

CURVE = 61
"""Number of points of the trade-off curve up to 1; the last one is replaced by two others."""
MEMBERSHIP = {"add-remove": "remove", "zero-out": "zero-out-remove", "replace-one": "replace-one"}
"""Adjacency by relation for tests of the null hypothesis that the example was not used."""
ASKED = {
    "delta": DELTA,
    "epsilon": EPSILON,
    "false_positive_rate": training_params.FALSE_POSITIVE_RATE,
    "true_positive_rate": training_params.TRUE_POSITIVE_RATE,
    "member_probability": training_params.MEMBER_PROBABILITY,
    "smallest_false_positive_rate": training_params.SMALLEST_FALSE_POSITIVE_RATE,
}
"""Numbers at which quantities are asked, by name."""
USUAL = {
    "delta": (1e-5, 1e-6, 1e-8),
    "epsilon": (1.0, 2.0, 4.0, 8.0),
    "false_positive_rate": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
    "true_positive_rate": (0.5,),
    "member_probability": (0.5, 0.1, 0.01),
    "smallest_false_positive_rate": (1e-6, 1e-3),
}
"""Numbers at which quantities are asked by default."""
NAMES = {
    "epsilon": "run-epsilon",
    "delta": "run-delta",
    "true_positive_rate": "run-tpr",
    "false_positive_rate": "run-fpr",
    "advantage": "run-advantage",
    "accuracy": "run-accuracy",
    "mu": "run-mu",
}
"""The problem about a quantity alone. If both ends of a run need distributions of their own, its quantities
except epsilon are read from wider cells, which they share."""
PRECISION_AT = 1e-3
"""False positive rate of the precision, unless other rates are given."""


@dataclass(frozen=True, kw_only=True)
class ProfileLine:
    """One number of a profile with both ends.

    Attributes:
        quantity: Name of the quantity.
        at: The numbers at which it is asked, by name.
        lower: Lower end.
        upper: Upper end.
    """

    quantity: str
    at: dict[str, float]
    lower: float
    upper: float


@dataclass(frozen=True, kw_only=True)
class RunProfile:
    """The profile of one training run.

    Attributes:
        phases: The phases of the run in one line.
        adjacency: The neighbouring relation.
        lines: The numbers.
        unamplified: The mu of the run without sampling.
        rates: False positive rates of the trade-off curve.
        powers: Lower and upper ends of the true positive rates at these rates.
    """

    phases: str
    adjacency: str
    lines: Sequence[ProfileLine]
    unamplified: float
    rates: Sequence[float]
    powers: tuple[Sequence[float], Sequence[float]]

    def as_content(self) -> dict[str, Any]:
        """Return the content of the JSON output."""
        return {
            "phases": self.phases,
            "adjacency": self.adjacency,
            "profile": [vars(line) for line in self.lines],
            "mu_without_sampling": self.unamplified,
            "curve": [
                {"false_positive_rate": rate, "lower": lower, "upper": upper}
                for rate, lower, upper in zip(self.rates, *self.powers, strict=True)
            ],
        }


def run_profile(phases: str, adjacency: str, numbers: Mapping[str, Sequence[object]]) -> RunProfile:
    """Compute the profile of a run.

    Args:
        phases: The phases in one line, as in `run-epsilon`.
        adjacency: The neighbouring relation.
        numbers: Numbers at which quantities are asked, by a name of `ASKED`; `USUAL` for absent names.

    Raises:
        PrivsweepError: The run, the relation or a number is invalid, or no theorem covers the relation.
    """
    checked = {
        name: [float(parameter.check(value)) for value in numbers.get(name) or USUAL[name]]
        for name, parameter in ASKED.items()
    }
    problem = RunAdvantage.asked({"phases": phases, "adjacency": adjacency})
    run, relation = problem.run(), RELATIONS[problem.adjacency]
    if why := next((why for phase in run if (why := phase.reason(relation))), None):
        raise DomainError(why)
    asked = list(_asked(adjacency, checked, bool(numbers.get("false_positive_rate"))))
    profile = Profile(run, adjacency, [question for _, _, question in asked])
    alone = {
        place: _computed(problem.phases, adjacency, quantity, at)
        for place, (quantity, at, _) in enumerate(asked)
        if quantity == "epsilon" or (quantity in NAMES and profile.bounds.tight)
    }
    profile.questions = [each for place, (_, _, each) in enumerate(asked) if place not in alone]
    shared = iter(profile.answers())
    lines = [
        ProfileLine(quantity=quantity, at=at, lower=ends[0], upper=ends[1])
        for place, (quantity, at, _) in enumerate(asked)
        for ends in [alone[place] if place in alone else _converted(quantity, at, *next(shared))]
    ]
    least = min(1e-6, *checked["false_positive_rate"])
    rates = np.append(np.geomspace(least, 1.0, CURVE)[:-1], [0.9, 0.99])
    lower, upper = profile.curve(rates)
    return RunProfile(
        phases=problem.phases,
        adjacency=adjacency,
        lines=lines,
        unamplified=profile.unamplified,
        rates=rates.tolist(),
        powers=(lower.tolist(), upper.tolist()),
    )


def _asked(
    adjacency: str, numbers: dict[str, list[float]], own_rates: bool
) -> "list[tuple[str, dict[str, float], Question]]":
    """Return name, numbers and question of every line."""
    deltas = ((at, Question(asks="epsilon", at=at, adjacency=adjacency)) for at in numbers["delta"])
    epsilons = ((at, Question(asks="delta", at=at, adjacency=adjacency)) for at in numbers["epsilon"])
    rates, priors = numbers["false_positive_rate"], numbers["member_probability"]
    powers = ((at, PowerQuestion(at=at, adjacency=adjacency)) for at in rates)
    inverse = ((at, RateQuestion(at=at, adjacency=adjacency)) for at in numbers["true_positive_rate"])
    found: list[tuple[str, dict[str, float], Question]] = [
        *(("epsilon", {"delta": at}, question) for at, question in deltas),
        *(("delta", {"epsilon": at}, question) for at, question in epsilons),
        *(("true_positive_rate", {"false_positive_rate": at}, question) for at, question in powers),
        *(("false_positive_rate", {"true_positive_rate": at}, question) for at, question in inverse),
        ("advantage", {}, AdvantageQuestion()),
        *(("accuracy", {"member_probability": prior}, accuracy_question(prior)) for prior in priors),
    ]
    towards = MEMBERSHIP[RELATIONS[adjacency]]
    if set(DIRECTIONS[towards]) <= set(DIRECTIONS[adjacency]):  # otherwise the test shows absence
        for prior in priors:
            for rate in rates if own_rates else [PRECISION_AT]:
                at = {"member_probability": prior, "false_positive_rate": rate}
                found.append(("precision", at, PowerQuestion(at=rate, adjacency=towards)))
    for smallest in numbers["smallest_false_positive_rate"]:
        at = {"smallest_false_positive_rate": smallest}
        found.append(("mu", at, MuQuestion(at=smallest, adjacency=adjacency)))
    return found


def _computed(phases: str, adjacency: str, quantity: str, at: dict[str, float]) -> Ends:
    """Return both ends as a question about this quantity alone computes them."""
    problem = find_problem(NAMES[quantity]).from_fields({"phases": phases, "adjacency": adjacency, **at})
    method: Method = RunsCertified() if quantity in ("epsilon", "delta") else RunsCurves()
    answer = method.answer(problem, seed=0)
    return answer.lower, answer.upper


def _converted(quantity: str, at: dict[str, float], lower: float, upper: float) -> tuple[float, float]:
    """Return the ends of a quantity from those of its question."""
    if quantity == "accuracy":
        return accuracy_bounds(at["member_probability"], lower, upper)
    if quantity == "precision":
        return precision_bounds(at["member_probability"], at["false_positive_rate"], lower, upper)
    return lower, upper
