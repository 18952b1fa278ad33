"""Bounds of the accuracy of the best guess: that of a blind guess, plus bounds of the advantage."""

from dataclasses import dataclass

from privcore.answer import Answer, intersect
from privcore.labels.blind import LabelsBlind
from privcore.labels.dominated import LabelsDominated
from privcore.labels.problems import SINGLE, LabelAdvantage, LabelAttackAccuracy
from privcore.labels.response import accuracy
from privcore.labels.root import LabelsBernstein, LabelsChernoff, LabelsRoot
from privcore.labels.unchanged import LabelsUnchanged
from privcore.labels.variation import LabelsVariation
from privcore.method import Cost, Direction, Method

_BOUNDS: tuple[Method, ...] = (
    LabelsUnchanged(),
    LabelsBlind(),
    LabelsDominated(),
    LabelsVariation(),
    LabelsRoot(),
    LabelsBernstein(),
    LabelsChernoff(),
)
"""Explicit bounds of the advantage; those that are left out are never tighter than all of these."""


@dataclass(frozen=True, kw_only=True)
class LabelsGuess(Method[LabelAttackAccuracy]):
    """The best guess is right with the probability of a blind guess plus the additive advantage.

    The answer adds the intersection of the explicit bounds of `label-advantage`. Both ends are those of the
    advantage, shifted by the same number.
    """

    name = "labels.guess"
    problems = (LabelAttackAccuracy,)
    direction = Direction.ENCLOSURE
    reference = "the definition of the additive advantage, and the references of its bounds"

    def applies(self, problem: LabelAttackAccuracy) -> str | None:
        if problem.mechanism in SINGLE:
            return "The mechanism has no bags; labels.response has the closed forms."
        return problem.contradiction() or None

    def cost(self, problem: LabelAttackAccuracy) -> Cost:
        costs = [method.cost(_advantage(problem)) for method in _used(problem)]
        return Cost(seconds=sum(c.seconds for c in costs), bytes=sum(c.bytes for c in costs))

    def answer(self, problem: LabelAttackAccuracy, seed: int) -> Answer:
        about, used = _advantage(problem), _used(problem)
        found = intersect([m.answer(about, seed).said_by(m.name) for m in used], about.largest)
        low, high = accuracy(problem.distribution, (found.lower, found.upper))
        by = " and ".join(dict.fromkeys(name for name in (found.lower_by, found.upper_by) if name))
        return Answer.enclosure(max(0.0, low), min(problem.largest, high), detail=f"advantage by {by}")


def _advantage(problem: LabelAttackAccuracy) -> LabelAdvantage:
    return LabelAdvantage(**problem.as_fields())  # type: ignore[arg-type]  # the fields are the same


def _used(problem: LabelAttackAccuracy) -> list[Method]:
    about = _advantage(problem)
    return [method for method in _BOUNDS if method.applies(about) is None]
