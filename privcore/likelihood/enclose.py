"""Refine the laws until the bracket of an epsilon or a delta is as narrow as asked."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from privcore.likelihood import profile
from privcore.likelihood.law import Law, LikelihoodRangeError, Resolution

SMALLEST_DELTA = 1e-100
"""Below this the products of two tail masses would leave the range of doubles."""
SHARE = 1e-4
"""Part of delta that may be cut off in all."""
ATTEMPTS = 8


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is read off: epsilon at a delta, or delta at an epsilon, for one adjacency."""

    asks: str
    at: float
    adjacency: str

    def upper(self, law: Law) -> float:
        """Return the upper bound that a dominating law gives."""
        read = profile.epsilon_upper if self.asks == "epsilon" else profile.delta_upper
        return read(law, self.at, self.adjacency)

    def lower(self, law: Law) -> float:
        """Return the lower bound that a garbled law gives."""
        read = profile.epsilon_lower if self.asks == "epsilon" else profile.delta_lower
        return read(law, self.at, self.adjacency)


@dataclass(frozen=True, kw_only=True)
class Laws:
    """What one resolution gives: a dominating law, a garbled one, and the garbled twin of the first.

    The twin differs from `lower` where the upper bound rests on a reduction that is itself not tight; it
    tells whether a finer resolution would still help.
    """

    upper: Law
    lower: Law
    twin: Law


def enclose(
    build: Callable[[Resolution], Laws],
    question: Question,
    tolerance: float,
    copies: float,
    outer: tuple[float, float],
    combinations: int,
) -> tuple[float, float, str]:
    """Return a bracket of the asked quantity and how it was reached.

    Args:
        build: The laws at a resolution; may raise `LikelihoodRangeError`.
        question: What to read off.
        tolerance: Asked relative width; refinement stops there, or after `ATTEMPTS` resolutions.
        copies: Largest number of times that something cut off enters the result.
        outer: A bracket known beforehand; the result lies within.
        combinations: How many combinations of two laws one build takes, which sets the first resolution.

    Returns:
        Lower end, upper end, detail.
    """
    lower, upper = outer
    delta = question.at if question.asks == "epsilon" else max(min(upper, 1e-5), SMALLEST_DELTA)
    if question.asks == "epsilon" and delta < SMALLEST_DELTA:
        return lower, upper, f"delta below {SMALLEST_DELTA:g}: closed-form bounds only"
    sharpness = 1.0 if question.asks == "epsilon" else 0.3
    fineness = sharpness * min(1.0 / 6.0, math.sqrt(6.0 * tolerance / (combinations + 2)))
    detail = "closed-form bounds only"
    last_gap = math.inf
    for _ in range(ATTEMPTS):
        if upper <= lower * (1.0 + tolerance) or upper <= 0.0:
            break
        tail = _tier(SHARE * delta) * _tier(1.0 / copies)
        try:
            laws = build(Resolution(fineness=fineness, tail=tail))
        except LikelihoodRangeError as error:
            return lower, upper, f"{error}; closed-form bounds"
        new_upper, twin = question.upper(laws.upper), question.lower(laws.twin)
        lower, upper = max(lower, question.lower(laws.lower)), min(upper, new_upper)
        detail = f"{laws.upper.x.size} cells of 1/{1.0 / fineness:.0f} standard deviation, tail {tail:.0e}"
        gap = new_upper / twin - 1.0 if twin > 0.0 else math.inf
        if gap <= tolerance or gap > 0.9 * last_gap:  # done, or rounding is what is left
            break
        if question.asks == "delta":
            seen = max(twin, SMALLEST_DELTA) if twin > 0.0 else delta * 1e-10
            if SHARE * seen < 0.5 * tail * copies:
                delta = max(seen, SMALLEST_DELTA)
                if delta == SMALLEST_DELTA and twin == 0.0 and tail <= _tier(SHARE * delta):
                    break
                continue
        last_gap = gap
        fineness = max(fineness * max(0.2, min(0.8, math.sqrt(0.7 * tolerance / gap))), 1e-4)
    return lower, upper, detail


def powering(times: int) -> int:
    """Return how many combinations binary powering takes."""
    return times.bit_length() + times.bit_count() - 2


def _tier(x: float) -> float:
    """Return x rounded down to a power of 10^5, so that neighbouring questions share their laws."""
    return 10.0 ** (5 * math.floor(math.log10(x) / 5.0 + 1e-9))
