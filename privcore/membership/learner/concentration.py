"""How small the loss of a fresh record can be in the presence of Gaussian noise."""

import math
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.membership.learner.problems import MembershipInterpolationCap
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS

_SLACK = 2e-15


@dataclass(frozen=True, kw_only=True)
class MembershipConcentration(Method[MembershipInterpolationCap]):
    """A symmetric interval of given length has the largest normal probability if it is centred.

    The regression function attains it: 2 Phi(e^(1/2) / s) - 1 for the level e and the noise s.
    """

    name = "membership.concentration"
    problems = (MembershipInterpolationCap,)
    direction = Direction.ENCLOSURE
    reference = f"beside {AUBINAIS}, Theorem 11 and Section 6; Levy's concentration function"

    def cost(self, problem: MembershipInterpolationCap) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: MembershipInterpolationCap, seed: int) -> Answer:
        found = math.erf(math.sqrt(0.5 * problem.loss_level) / problem.noise_deviation)
        return Answer.enclosure(
            found * (1.0 - _SLACK), min(1.0, found * (1.0 + _SLACK)), detail="attained by the true function"
        )
