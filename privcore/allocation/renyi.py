"""Renyi divergences of integer order of random allocation with Gaussian noise, direction remove."""

from dataclasses import dataclass

from privcore.allocation.moments import allocation_moments
from privcore.allocation.problems import AllocationRenyi
from privcore.answer import Answer
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import FEW_FUNCTIONS
from privcore.papers import FELDMAN_SHENFELD


@dataclass(frozen=True, kw_only=True)
class AllocationRenyiMethod(Method[AllocationRenyi]):
    r"""Log-moment of the mean of t likelihood ratios, divided by the order minus one.

    The power of a series gives the log-moment $(\alpha - 1) R_\alpha$, rounded up and down, exact to about
    1e-11. The divergences of epochs add up, since the noise of epochs is independent, and the bound is
    attained: all other gradients may be 0.
    """

    name = "allocation.renyi"
    problems = (AllocationRenyi,)
    direction = Direction.ENCLOSURE
    reference = f"{FELDMAN_SHENFELD}, Theorem 4.8 and Corollary 4.10"
    version = 2
    shares = ("sigma", "steps", "renyi_order")

    def cost(self, problem: AllocationRenyi) -> Cost:
        n = problem.renyi_order
        rounds = 1 if problem.steps >= n else problem.steps.bit_length() + problem.steps.bit_count()
        return Cost(seconds=4e-3 + rounds * (n * 6e-5 + n * n * 6e-8), bytes=1e6)

    def answer(self, problem: AllocationRenyi, seed: int) -> Answer:
        lower, upper = (
            problem.epochs
            * float(allocation_moments(problem.sigma, problem.steps, problem.renyi_order, side)[-1])
            / (problem.renyi_order - 1.0)
            * (1.0 + side * FEW_FUNCTIONS)
            for side in (-1.0, 1.0)
        )
        return Answer.enclosure(lower, upper, detail="direction remove")
