"""Audits under the model of Poisson-sampled Gaussian steps: by Algorithm 3, or every bound of the count."""

import math
from collections.abc import Callable
from functools import partial
from typing import Annotated

import numpy as np

from privcore import params
from privcore.answer import Answer
from privcore.auditing.counts import refuted_mu
from privcore.auditing.exact import curve_cost, curve_mu, least_tail, probability_at
from privcore.auditing.problems import AuditDpsgdEpsilon, AuditDpsgdNoise, AuditEpsilon, AuditMu, level
from privcore.auditing.programme import largest_mu, profile_of, too_many_guesses
from privcore.auditing.recursion import LINES, lines_of, unlikely
from privcore.auditing.tightest import AuditingTightest, counts_of, programme_cost
from privcore.likelihood_ratio.distribution import (
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
    mixed,
    product_of,
)
from privcore.likelihood_ratio.profile import epsilon_lower
from privcore.likelihood_ratio.questions import SHARE, SMALLEST_DELTA, first_fineness, powering, tier
from privcore.likelihood_ratio.steps import lognormal
from privcore.method import Cost, Direction, Method
from privcore.numerics.binomial import Array
from privcore.numerics.rounding import AUDIT_SEARCH
from privcore.papers import MAHLOUJIFAR

_LEAST_NOISE, _MOST_NOISE = 0.05, 1e6
NOTHING = "no noise multiplier is refuted"
_SCOUT = 3.0
"""Factor on the width of cells in the first, coarse search for the noise multiplier."""


class AuditingDpsgd(Method[AuditDpsgdEpsilon]):
    r"""Epsilon of the smallest noise multiplier that the counts refute, at the given sampling and steps.

    The trade-off function of each noise multiplier is bounded by supporting lines, from the certified
    likelihood-ratio distribution for adding and removing an example. More noise is more private, so if a
    noise multiplier is refuted, all larger ones are. Distributions are rounded to the safe side, but the
    audit refutes members of a family: the value assumes that the mechanism is DP-SGD, and is an estimate.
    """

    name = "auditing.dpsgd"
    problems = (AuditDpsgdEpsilon,)
    direction = Direction.ESTIMATE
    reference = f"{MAHLOUJIFAR}, Algorithm 3 and Definition 7, composed DP-SGD"
    version = 2

    tolerance: Annotated[float, params.TOLERANCE] = 0.004

    def applies(self, problem: AuditDpsgdEpsilon) -> str | None:
        return no_inclusion(problem)

    def cost(self, problem: AuditDpsgdEpsilon) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-4, bytes=1e4)
        products = powering(problem.steps)
        cells = 30.0 / first_fineness("epsilon", self.tolerance, products) + 30.0
        depth = max(1.0, -math.log10(_resolution(problem, 1.0).tail) / 15.0)  # longer tails take more cells
        seconds = 0.06 + 4.0 * (products + 1) * (6e-4 + 1e-8 * cells * cells)
        return Cost(seconds=depth * seconds, bytes=2e7)

    def answer(self, problem: AuditDpsgdEpsilon, seed: int) -> Answer:
        return refuted_epsilon(problem, refuted_noise(problem, self.tolerance), self.tolerance)


def no_inclusion(problem: AuditDpsgdEpsilon) -> str | None:
    """Return the reason that the trade-off functions do not apply to the guesses, or None."""
    if problem.relation() != "add-remove":
        return "The trade-off function is for guesses of inclusion only (alternatives=2, not pairs)."
    return None


def refuted_epsilon(problem: AuditDpsgdEpsilon, found: tuple[float, bool] | str, tolerance: float) -> Answer:
    """Return the answer with the epsilon of a refuted noise multiplier, as `refuted_noise` returns it."""
    if isinstance(found, str):
        return Answer.about(0.0, detail=f"model-based: {found}")
    noise, least = found
    law = law_of(problem, noise, finest(problem, tolerance)).lower
    detail = f"model-based: noise multiplier {noise:.6g} of DP-SGD"
    if least:
        detail += ", the least that can be computed"
    return Answer.about(
        epsilon_lower(law, problem.delta, "add-remove"),
        detail=f"{detail}, confidence {problem.audit_confidence:.4g}",
    )


def refuted_noise(problem: AuditDpsgdEpsilon, tolerance: float) -> tuple[float, bool] | str:
    """Return the smallest refuted noise multiplier, and whether it is the least that can be computed.

    Args:
        problem: The counts, the sampling and the steps; delta only sets the resolution.
        tolerance: Relative precision of epsilon.

    Returns:
        Noise multiplier that is refuted, as are all larger ones; or a reason.
    """
    mu, tau = refuted_mu(problem), level(problem)
    if mu == 0.0:
        return NOTHING

    def refutes(law: RatioDistribution) -> bool:
        return bool(unlikely((LINES, 0.0, 0.0), lines_of(law), problem.counts, tau))

    return least_noise(problem, refutes, mu, tolerance)


def least_noise(
    problem: AuditDpsgdEpsilon, refutes: Callable[[RatioDistribution], bool], mu: float, tolerance: float
) -> tuple[float, bool] | str:
    """Return the smallest noise multiplier that a bound refutes, as `refuted_noise` returns it.

    Args:
        problem: The counts, the sampling and the steps.
        refutes: Whether the bound refutes the mechanisms that a likelihood-ratio distribution dominates.
        mu: The noise multiplier is about as private as mu-GDP, > 0.
        tolerance: Relative precision of epsilon.
    """
    # By the central limit theorem mu is about q sqrt(t (e^(1 / sigma^2) - 1)).
    limit = (mu / problem.sampling_probability) ** 2 / problem.steps
    start = min(max(1.0 / math.sqrt(math.log1p(limit)), _LEAST_NOISE), _MOST_NOISE)
    fine = finest(problem, tolerance)
    scout = Resolution(fineness=min(0.25, _SCOUT * fine.fineness), tail=fine.tail)
    beyond: list[float] = []

    def at(res: Resolution) -> Callable[[float], bool]:
        return lambda noise: _refuted(problem, refutes, noise, res, beyond)

    rough = _least_refuted(at(scout), start, 0.05, 0.01)
    beyond.clear()
    noise = _least_refuted(at(fine), rough or start, 0.02, 0.03 * tolerance)
    if noise is None:
        return f"no noise multiplier up to {_MOST_NOISE:g} is refuted"
    return noise, noise <= _LEAST_NOISE or noise < max(beyond, default=0.0) * (1.0 + tolerance)


def finest(problem: AuditDpsgdEpsilon, tolerance: float) -> Resolution:
    """Return the resolution for a relative precision of epsilon."""
    return _resolution(problem, first_fineness("epsilon", tolerance, powering(problem.steps)))


def _resolution(problem: AuditDpsgdEpsilon, fineness: float) -> Resolution:
    """Return a resolution whose tails are negligible against the probabilities in the recursion."""
    errors = max(1, problem.guesses - problem.correct)
    least = min(problem.delta, level(problem) * errors / problem.canaries)
    tail = tier(SHARE * max(least, SMALLEST_DELTA)) * tier(1.0 / problem.steps)
    return Resolution(fineness=fineness, tail=tail)


def law_of(problem: AuditDpsgdEpsilon, noise: float, res: Resolution) -> RatioBracket:
    """Return the bracket of the likelihood ratio of all steps."""
    step = mixed(lognormal(1.0 / noise, res), problem.sampling_probability, res)
    return product_of(step, problem.steps, res)


def _refuted(
    problem: AuditDpsgdEpsilon,
    refutes: Callable[[RatioDistribution], bool],
    noise: float,
    res: Resolution,
    beyond: list[float],
) -> bool:
    """Return whether a bound refutes a noise multiplier; False if its ratio exceeds the range of doubles.

    A noise multiplier beyond the range is appended to `beyond`.
    """
    try:
        law = law_of(problem, noise, res).upper
    except LikelihoodRangeError:
        beyond.append(noise)
        return False
    return refutes(law)


def _least_refuted(
    refuted: Callable[[float], bool], start: float, step: float, precision: float
) -> float | None:
    """Return the least refuted noise multiplier, to a relative precision; None if all are accepted.

    Args:
        refuted: Predicate that is false for small noise and true for large noise.
        start: First noise multiplier of the search.
        step: Relative size of the first step; each further step is twice as large.
        precision: Relative precision.
    """
    high, up = start, step
    while not refuted(high):
        if high >= _MOST_NOISE:
            return None
        high, up = min(_MOST_NOISE, high * (1.0 + up)), 2.0 * up
    low, down = max(_LEAST_NOISE, high / (1.0 + step)), 2.0 * step
    while refuted(low):
        if low <= _LEAST_NOISE:
            return low
        high, low, down = low, max(_LEAST_NOISE, low / (1.0 + down)), 2.0 * down
    while high > low * (1.0 + precision):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return high


_LAWS, _TESTS = 6.0, 16.0
"""Distributions for the programme, as a multiple of those for Algorithm 3, and tests of a privacy curve."""


class AuditingTightestDpsgd(Method[AuditDpsgdEpsilon]):
    """Epsilon of the smallest noise multiplier that any bound of the probability of the count refutes.

    The bounds are Algorithm 3, the exact probabilities along the privacy curve and, for up to 500 guesses,
    the linear programme of Theorem 9. An epsilon that is refuted for every mechanism is refuted, too. As for
    `auditing.dpsgd`, the value assumes that the mechanism is DP-SGD.
    """

    name = "auditing.tightestdpsgd"
    problems = (AuditDpsgdEpsilon,)
    direction = Direction.ESTIMATE
    reference = f"{MAHLOUJIFAR}, Theorem 9 and Definition 7, composed DP-SGD; the programme is ours"

    tolerance: Annotated[float, params.TOLERANCE] = 0.004

    def applies(self, problem: AuditDpsgdEpsilon) -> str | None:
        return no_inclusion(problem)

    def cost(self, problem: AuditDpsgdEpsilon) -> Cost:
        return noise_cost(problem, self.tolerance)

    def answer(self, problem: AuditDpsgdEpsilon, seed: int) -> Answer:
        found = refuted_epsilon(problem, tightest_noise(problem, self.tolerance), self.tolerance)
        audit = AuditEpsilon(
            **counts_of(problem), delta=problem.delta, audit_confidence=problem.audit_confidence
        )
        free = AuditingTightest().answer(audit, seed).lower
        if found.value is None or free <= found.value:
            return found
        detail = f"model-based: refuted for every mechanism, confidence {problem.audit_confidence:.4g}"
        return Answer.about(free, detail=detail)


class AuditingNoise(Method[AuditDpsgdNoise]):
    """Smallest noise multiplier that the counts refute, at the given sampling and steps.

    It is that of `auditing.tightestdpsgd`. Larger ones are refuted, too, so the noise multiplier of DP-SGD is
    at most this one with the confidence.
    """

    name = "auditing.noise"
    version = 2
    problems = (AuditDpsgdNoise,)
    direction = Direction.UPPER
    reference = f"{MAHLOUJIFAR}, Theorem 9 and Definition 7, composed DP-SGD; the programme is ours"

    tolerance: Annotated[float, params.TOLERANCE] = 0.004

    def applies(self, problem: AuditDpsgdNoise) -> str | None:
        return no_inclusion(_with_delta(problem))

    def cost(self, problem: AuditDpsgdNoise) -> Cost:
        return noise_cost(_with_delta(problem), self.tolerance)

    def answer(self, problem: AuditDpsgdNoise, seed: int) -> Answer:
        found = tightest_noise(_with_delta(problem), self.tolerance)
        noise, detail = (math.inf, found) if isinstance(found, str) else (found[0], "DP-SGD")
        if not isinstance(found, str) and found[1]:
            detail += ", the least that can be computed"
        return Answer.enclosure(0.0, noise, confidence=problem.audit_confidence, detail=detail)


def tightest_noise(problem: AuditDpsgdEpsilon, tolerance: float) -> tuple[float, bool] | str:
    r"""Return the smallest refuted noise multiplier, and whether it is the least that can be computed.

    Near the noise multiplier $\sigma_0$ that Algorithm 3 refutes, DP-SGD is about as private as the Gaussian
    mechanism with the mu that it refutes. The search is for the largest mu of the family that has the noise
    multiplier $\sigma_0 \mu_0 / \mu$.

    Args:
        problem: The counts, the sampling and the steps; delta only sets the resolution.
        tolerance: Relative precision of epsilon.

    Returns:
        Noise multiplier that is refuted, as are all larger ones; or a reason.
    """
    found, start = refuted_noise(problem, tolerance), refuted_mu(problem)
    on_curve = curve_mu(_as_mu(problem), start)
    if on_curve > start * (1.0 + tolerance):
        start = on_curve
        curve = least_noise(problem, partial(_on_curve, problem, start), start, tolerance)
        found = min((each for each in (found, curve) if not isinstance(each, str)), default=found)
    if isinstance(found, str) or found[1] or too_many_guesses(problem) is not None:
        return found
    noise, fine = found[0], finest(problem, tolerance)

    def profile(mu: float, slopes: Array) -> Array:
        try:
            law = law_of(problem, noise * start / mu, fine).upper
        except LikelihoodRangeError:
            return np.ones(slopes.size)
        return profile_of(law, slopes)

    tau = level(problem)
    mu = largest_mu(problem, profile, start, tau, precision=0.03 * tolerance)
    return min(noise, noise * start / mu * (1.0 + AUDIT_SEARCH)), False


def _on_curve(problem: AuditDpsgdEpsilon, mu: float, law: RatioDistribution) -> bool:
    """Return whether an exact probability along the privacy curve of a distribution refutes it."""
    return least_tail(partial(probability_at, problem, law), mu)[0] <= level(problem)


def _as_mu(problem: AuditDpsgdEpsilon) -> AuditMu:
    """Return the audit with the same counts for the Gaussian family."""
    return AuditMu(**counts_of(problem), audit_confidence=problem.audit_confidence)


def noise_cost(problem: AuditDpsgdEpsilon, tolerance: float) -> Cost:
    """Return the cost of the smallest noise multiplier that the counts refute."""
    once = AuditingDpsgd(tolerance=tolerance).cost(problem)
    if no_inclusion(problem) is not None:
        return once
    curve = curve_cost(problem)
    seconds, memory = 2.0 * once.seconds + _TESTS * curve.seconds, once.bytes + curve.bytes
    if too_many_guesses(problem) is None:
        more = programme_cost(problem)
        seconds, memory = seconds + _LAWS * once.seconds + more.seconds, memory + more.bytes
    return Cost(seconds=seconds, bytes=memory)


def _with_delta(problem: AuditDpsgdNoise) -> AuditDpsgdEpsilon:
    """Return the problem about epsilon with the same counts; its delta does not limit the resolution."""
    return AuditDpsgdEpsilon(**problem.as_fields(), delta=0.5)  # type: ignore[arg-type]
