"""One quantity of a release of labels: its bracket by all methods, and its best single value."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from flows.answers.ask import Asked, ask, is_tight
from privcore import (
    Answer,
    Bracket,
    LimitError,
    Method,
    Point,
    Problem,
    evaluate,
    intersect,
    methods_for,
)

Evaluated = Callable[[Point], Answer]

TIGHT = 1e-7
"""Relative width of a bracket at which no further method is used."""
NOTHING = 1e-200
"""Below this, a quantity counts as 0."""
_DRAWN = 2e7
"""Labels that a simulation draws, at most 1,000,000 bags of them."""
CONFIDENCE = 0.999
"""Confidence of a simulated quantity."""
_SIMULATION, _QUADRATURE = "labels.sampling", "labels.gauss"


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A bracket of one quantity, and its best single value between the ends.

    Attributes:
        bracket: The tightest bracket, with its confidence.
        value: The value.
        certain: The bracket from proofs alone, if the tightest one is not proved; else None.
    """

    bracket: Bracket
    value: float
    certain: Bracket | None = None

    def as_content(self) -> dict[str, float]:
        """Return it for JSON; `certain_lower` and `certain_upper` are the ends from proofs alone."""
        lower, upper = self.bracket.lower, self.bracket.upper
        content = {"lower": lower, "upper": upper, "value": self.value, "confidence": self.bracket.confidence}
        if self.certain is None:
            return content
        return content | {"certain_lower": self.certain.lower, "certain_upper": self.certain.upper}


def read(problem: Problem, evaluated: Evaluated = evaluate, confidence: float = CONFIDENCE) -> Quantity:
    """Ask all methods about a quantity; without a tight proof, intersect with the simulation.

    Args:
        problem: The question.
        evaluated: Function that computes a point.
        confidence: Confidence of the simulation.
    """
    asked = ask(problem, list(_methods(problem, confidence)), until=_is_proved, evaluated=evaluated)
    answers = {reply.method.name: reply.answer for reply in asked.replies if reply.answer.ok}
    if not answers:
        fields = problem.as_fields()
        raise LimitError(
            f"No method answers {problem.name} for bags of {fields['bag_size']} within the limits."
        )
    used = [answer.said_by(name) for name, answer in answers.items()]
    if _is_proved(asked):
        used = [bracket for bracket in used if bracket.confidence == 1.0]
    bracket = intersect(used, problem.largest)
    if bracket.crossed:  # the simulation missed, as it may once in a thousand runs: only proofs count
        bracket = Bracket(lower=asked.lower, upper=asked.upper)
    values = {name: answer.value for name, answer in answers.items() if answer.value is not None}
    value = values.get(_QUADRATURE, values.get(_SIMULATION, _middle(bracket)))
    certain = None
    if bracket.confidence < 1.0:
        proved = asked.confidence == 1.0
        certain = Bracket(
            lower=asked.lower if proved else 0.0, upper=asked.upper if proved else problem.largest
        )
    return Quantity(bracket=bracket, value=min(max(value, bracket.lower), bracket.upper), certain=certain)


def read_proof(problem: Problem, enough: Callable[[Bracket], bool], evaluated: Evaluated) -> Quantity | None:
    """Return a quantity from proofs alone, or None if their bracket does not meet a condition."""

    def decides(asked: Asked) -> bool:
        proved = asked.ok and asked.confidence == 1.0
        return proved and enough(Bracket(lower=asked.lower, upper=asked.upper))

    proofs = [method for method in _methods(problem, CONFIDENCE) if method.name != _SIMULATION]
    asked = ask(problem, proofs, until=decides, evaluated=evaluated) if proofs else None
    if asked is None or not decides(asked):
        return None
    bracket = Bracket(lower=asked.lower, upper=asked.upper)
    return Quantity(bracket=bracket, value=_middle(bracket))


def _middle(bracket: Bracket) -> float:
    """Return the middle of a bracket, or infinity."""
    return bracket.upper if math.isinf(bracket.upper) else 0.5 * (bracket.lower + bracket.upper)


def _is_proved(asked: Asked) -> bool:
    narrow = is_tight(asked, TIGHT) or asked.lower == asked.upper or asked.upper < NOTHING
    return asked.ok and asked.confidence == 1.0 and narrow


def _methods(problem: Problem, confidence: float) -> Iterator[Method]:
    """Yield the methods that apply; the simulation draws more bags if they are small."""
    fields = problem.as_fields()
    for method, reason in methods_for(problem).items():
        if reason is None and method.name == _SIMULATION:
            most = 1e5 if problem.name == "label-ratio-quantile" else 1e6
            samples = max(1e4, min(most, _DRAWN / float(fields["bag_size"]) ** 1.5))
            yield method.from_knobs({"samples": int(samples), "confidence": confidence})
        elif reason is None:
            yield method()


MOST_BAG_SIZE = 4096
"""Largest bag size of a search."""
PROBLEMS = {
    "advantage": "label-advantage",
    "accuracy": "label-attack-accuracy",
    "log_ratio": "label-ratio-quantile",
    "infinite": "label-ratio-infinite",
}
"""Quantities, each with the name of its problem."""
