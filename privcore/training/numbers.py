"""The profile of one training run: every number with both ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privcore.answer import Interval
from privcore.errors import DomainError
from privcore.likelihood_ratio.profile import DIRECTIONS
from privcore.likelihood_ratio.questions import (
    PowerQuestion,
    Question,
    accuracy_bounds,
    precision_bounds,
    question_of,
)
from privcore.training.brackets import Ends, Profile
from privcore.training.certified import Certified
from privcore.training.guess import CANDIDATES, RunReconstruction, RunsGuess
from privcore.training.phase import RELATIONS
from privcore.training.problems import RUN, RUN_CURVE, InPhases, RunAdvantage, RunMu

CURVE = 61
"""Number of points of the trade-off curve up to 1; the last one is replaced by two others."""
MEMBERSHIP = {"add-remove": "remove", "zero-out": "zero-out-remove", "replace-one": "replace-one"}
"""Adjacency by relation for tests of the null hypothesis that the example was not used."""
ASKED = {kind.given: kind.parameters[kind.given] for kind in (*RUN, *RUN_CURVE) if kind.given}
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
PRECISION_AT = 1e-3
"""False positive rate of the precision, unless other rates are given."""


@dataclass(frozen=True, kw_only=True)
class ProfileLine(Interval):
    """One number of a profile with both ends.

    Attributes:
        quantity: Name of the quantity.
        at: The numbers at which it is asked, by name.
    """

    quantity: str
    at: dict[str, float]


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
            "profile": [
                {"quantity": line.quantity, "at": line.at, "lower": line.lower, "upper": line.upper}
                for line in self.lines
            ],
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
        numbers: Numbers at which quantities are asked, by a name of `ASKED`, with `USUAL` for absent names,
            or numbers of `candidates` for reconstruction, which has no usual ones.

    Raises:
        PrivsweepError: The run, the relation or a number is invalid, or no theorem covers the relation.
    """
    checked = {
        name: [float(parameter.check(value)) for value in numbers.get(name) or USUAL[name]]
        for name, parameter in ASKED.items()
    }
    problem = RunAdvantage.asked({"phases": phases, "adjacency": adjacency})
    if why := problem.reason():
        raise DomainError(why)
    asked = _asked(problem, checked, bool(numbers.get("false_positive_rate")))
    profile = Profile(problem.run(), adjacency, [question for _, _, question, _ in asked])
    # If both ends need distributions of their own, all quantities except epsilon share those of wider cells.
    alone = {
        place: _computed(each)
        for place, (quantity, _, _, each) in enumerate(asked)
        if each is not None and (quantity == "epsilon" or profile.bounds.tight)
    }
    profile.questions = [each for place, (_, _, each, _) in enumerate(asked) if place not in alone]
    shared = iter(profile.answers())
    lines = [
        ProfileLine(quantity=quantity, at=at, lower=ends[0], upper=ends[1])
        for place, (quantity, at, _, _) in enumerate(asked)
        for ends in [alone[place] if place in alone else _converted(quantity, at, *next(shared))]
    ]
    for each in numbers.get("candidates", []):
        guess = RunReconstruction.from_fields(
            {"phases": problem.phases, "adjacency": adjacency, "candidates": CANDIDATES.check(each)}
        )
        found = RunsGuess().answer(guess, seed=0)
        at = {"candidates": float(guess.at)}
        lines.append(ProfileLine(quantity=guess.asks, at=at, lower=found.lower, upper=found.upper))
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


Asked = tuple[str, dict[str, float], Question, InPhases | None]
"""Name of a quantity, the numbers at which it is asked, its question, and the problem about it alone."""


def _asked(run: InPhases, numbers: dict[str, list[float]], own_rates: bool) -> list[Asked]:
    """Return the lines of a profile; a precision has no problem of its own."""
    found, precisions = list[Asked](), list[Asked]()
    towards = MEMBERSHIP[RELATIONS[run.adjacency]]
    if set(DIRECTIONS[towards]) <= set(DIRECTIONS[run.adjacency]):  # otherwise the test shows absence
        for prior in numbers["member_probability"]:
            for rate in numbers["false_positive_rate"] if own_rates else [PRECISION_AT]:
                at = {"member_probability": prior, "false_positive_rate": rate}
                precisions.append(("precision", at, PowerQuestion(at=rate, adjacency=towards), None))
    for kind in (*RUN, *RUN_CURVE):
        found += precisions if kind is RunMu else []
        for at in [{kind.given: each} for each in numbers[kind.given]] if kind.given else [{}]:
            problem = kind.from_fields({"phases": run.phases, "adjacency": run.adjacency, **at})
            found.append((kind.asks, at, question_of(problem), problem))
    return found


def _computed(problem: InPhases) -> Ends:
    """Return both ends as a question about this quantity alone computes them."""
    answer = Certified().answer(problem, seed=0)
    return answer.lower, answer.upper


def _converted(quantity: str, at: dict[str, float], lower: float, upper: float) -> tuple[float, float]:
    """Return the ends of a quantity from those of its question."""
    if quantity == "accuracy":
        return accuracy_bounds(at["member_probability"], lower, upper)
    if quantity == "precision":
        return precision_bounds(at["member_probability"], at["false_positive_rate"], lower, upper)
    return lower, upper
