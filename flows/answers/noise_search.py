"""The search for the least noise, in brackets that several methods prove together."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from flows.answers.ask import CONFLICT, Asked, UncoveredError
from privcore import LimitError, PrivsweepError, Status
from privcore.numerics.bracket_search import BracketSearch

Look = Callable[[float, float], Asked]
"""Brackets epsilon at a sigma, with about the given relative width."""


def sigma_of(asked: Asked) -> float:
    """Return the noise multiplier that was asked about."""
    return float(asked.problem.as_fields()["sigma"])


@dataclass(kw_only=True)
class Search:
    """Search for the sigma at which epsilon falls below a target.

    Attributes:
        look: Asks for a bracket.
        target: Largest epsilon that is allowed.
        precision: Relative distance at which two sigmas count as neighbours.
        domain: Least and largest sigma.
        trials: What was asked so far, by sigma and tolerance.
    """

    look: Look
    target: float
    precision: float
    domain: tuple[float, float]
    trials: dict[tuple[float, float], Asked] = field(default_factory=dict)

    def run(self) -> tuple[Asked, Asked | None]:
        """Search until both sides are within the precision, or until the methods can tell no more.

        Returns:
            The bracket at the least noise that is proved to suffice, and at the most that is proved not to.

        Raises:
            UncoveredError: No sigma of the domain is proved to suffice.
            LimitError: Likewise, and a limit kept the methods from answering.
            PrivsweepError: Methods contradict one another.
        """
        search = BracketSearch(
            look=self._bracket, target=self.target, precision=self.precision, domain=self.domain
        )
        enough, short = search.run()
        if enough is None:
            raise self._unreachable()
        return self.trials[enough.at, enough.tolerance], (
            None if short is None else self.trials[short.at, short.tolerance]
        )

    def _bracket(self, sigma: float, tolerance: float) -> tuple[float, float]:
        """Return what is proved about epsilon; nothing where there is no answer or no proof."""
        asked = self.trials[sigma, tolerance] = self.look(sigma, tolerance)
        if asked.status == CONFLICT:
            raise PrivsweepError(asked.detail)
        return (asked.lower, asked.upper) if asked.ok and asked.confidence == 1.0 else (0.0, math.inf)

    def _unreachable(self) -> PrivsweepError:
        """Return the error that says why no sigma suffices."""
        last = max(self.trials.values(), key=sigma_of)
        still = f"at sigma={sigma_of(last):.6g} it may still be {last.upper!r}"
        kind = LimitError if last.status in {Status.TIMEOUT, Status.OUT_OF_MEMORY} else UncoveredError
        where = "in [{:.6g}, {:.6g}]".format(*self.domain)
        reason = (last.detail or still).rstrip(".")
        return kind(f"No sigma {where} is proved to reach epsilon={self.target!r}: {reason}.")
