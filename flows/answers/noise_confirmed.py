"""A noise multiplier whose epsilon, asked for again with default settings, is at most the target.

The search for the least noise ends with narrow brackets. The command `privsweep epsilon` computes wider
brackets, and their upper end at the same sigma may be above the target. The functions of this module raise
sigma until that upper end is at most the target.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

from flows.answers.ask import CONFLICT, Asked, UncoveredError
from flows.answers.noise import Noise
from privcore import PrivsweepError, Problem

Again = Callable[[Problem], Asked]
"""Function that answers a problem as `privsweep epsilon` does, such as `sourced.asked_until_tight`."""

BISECTIONS = 3
"""Number of times that the interval in which sigma is raised is halved afterwards."""


def suffices(asked: Asked, target: float) -> bool:
    """Return whether epsilon is proved to be at most the target, as the target is printed in decimals."""
    proved = asked.ok and asked.confidence == 1.0 and asked.upper < math.inf
    return proved and Decimal(asked.upper) <= Decimal(repr(target))


def confirmed(found: Noise, again: Again, *, precision: float, largest: float) -> Noise:
    """Return a noise multiplier, raised until its epsilon, asked for again, is at most the target.

    Args:
        found: Result of a search.
        again: Function that answers a problem.
        precision: Relative distance at which two sigmas count as neighbours.
        largest: Largest sigma of the domain.

    Raises:
        UncoveredError: No sigma in the domain suffices with these settings.
        PrivsweepError: Methods contradict one another.
    """
    raising = _Raising(found=found, again=again, digits=math.ceil(-math.log10(precision)) + 2)
    asked, at = raising.ask(found.sigma), found.sigma
    if suffices(asked, found.target):
        return replace(found, enough=asked, brackets=found.brackets + raising.count)
    failed, step = at, precision
    while not suffices(asked, found.target):
        if at >= largest:
            reached = f"to reach epsilon={found.target!r} with default settings"
            raise UncoveredError(f"No sigma up to {largest:.6g} is proved {reached}.")
        # Epsilon falls at least about like 1/sigma.
        step = max(2.0 * step, min(asked.upper / found.target, 2.0) - 1.0)
        failed, at = at, min(raising.rounded(at * (1.0 + step)), largest)
        asked = raising.ask(at)
    for _ in range(BISECTIONS):
        middle = raising.rounded(math.sqrt(failed * at))
        if at <= failed * (1.0 + precision) or not failed < middle < at:
            break
        trial = raising.ask(middle)
        if suffices(trial, found.target):
            asked, at = trial, middle
        else:
            failed = middle
    return replace(found, enough=asked, least=found.enough, brackets=found.brackets + raising.count)


@dataclass(kw_only=True)
class _Raising:
    """The questions about larger and larger noise multipliers.

    Attributes:
        found: Result of the search.
        again: Function that answers a problem.
        digits: Significant digits of a noise multiplier.
        count: Number of brackets so far.
    """

    found: Noise
    again: Again
    digits: int
    count: int = 0

    def ask(self, sigma: float) -> Asked:
        """Return the bracket of epsilon at this sigma."""
        problem = self.found.enough.problem
        self.count += 1
        asked = self.again(type(problem).from_fields({**problem.as_fields(), "sigma": sigma}))
        if asked.status == CONFLICT:
            raise PrivsweepError(asked.detail)
        return asked

    def rounded(self, sigma: float) -> float:
        """Return sigma with few digits."""
        return float(f"{sigma:.{self.digits}g}")
