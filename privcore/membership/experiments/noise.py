"""Bounds on the loss of a record from the noise of the targets, for any trained model."""

import math

from privcore.answer import Answer
from privcore.membership.experiments.problems import MembershipFit
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import CLOSED_FORM, probability_at_most
from privcore.papers import AUBINAIS


class MembershipNoise(Method[MembershipFit]):
    r"""Bound the probability of a small loss by that of the noise alone, $2 \Phi(\sqrt \varepsilon / s) - 1$.

    A fresh residual is Gaussian with standard deviation s, or $s \sqrt 2$ for the nearest neighbour, because
    the choice of the neighbour depends on the features alone. It is most often near 0 if its mean is 0. A
    training residual of least squares is Gaussian with mean 0 and standard deviation at most s; it is 0 if
    there are no more records than features.
    """

    name = "membership.noise"
    problems = (MembershipFit,)
    direction = Direction.ENCLOSURE
    reference = f"{AUBINAIS}, Section 4 and Examples 1 and 2, for Gaussian noise"

    def applies(self, problem: MembershipFit) -> str | None:
        if problem.tested == "train" and problem.learner == "network":
            return "No bound is proved for the loss of a network on its training records."
        return None

    def cost(self, problem: MembershipFit) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: MembershipFit, seed: int) -> Answer:
        if problem.tested == "train" and problem.interpolates:
            return Answer.enclosure(1.0, 1.0, detail="training residuals are 0")
        if problem.tested == "train":
            least = noise_share(problem.loss_level, problem.noise_deviation)
            return Answer.enclosure(
                least * (1.0 - CLOSED_FORM), 1.0, detail="residuals vary at most as much as the noise"
            )
        deviation = problem.noise_deviation * (math.sqrt(2.0) if problem.learner == "nearest" else 1.0)
        most = noise_share(problem.loss_level, deviation)
        return Answer.enclosure(
            0.0, probability_at_most(most, CLOSED_FORM), detail="residuals vary at least as much as the noise"
        )


def noise_share(loss_level: float, deviation: float) -> float:
    r"""Return the probability that squared noise is at most a level, $2 \Phi(\sqrt \varepsilon / s) - 1$.

    Args:
        loss_level: Level, >= 0.
        deviation: Standard deviation s of the Gaussian noise, > 0.

    Returns:
        Probability in [0, 1], with a relative error of about 1e-15.

    Reference:
        arXiv:2310.13786v6, Theorem 11 and Example 1, for Gaussian noise.

    Example:
        >>> round(noise_share(1e-6, 0.1), 5)
        0.00798
    """
    return math.erf(math.sqrt(0.5 * loss_level) / deviation)
