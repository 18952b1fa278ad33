"""Audits under the model of DP-SGD that use every bound of the probability of the count."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from privcore import params
from privcore.answer import Answer
from privcore.auditing.approximate import refuted_mu
from privcore.auditing.curve import curve_cost, curve_mu, least_tail, probability_at
from privcore.auditing.dpsgd import (
    AuditingDpsgd,
    finest,
    law_of,
    least_noise,
    no_inclusion,
    refuted_epsilon,
    refuted_noise,
)
from privcore.auditing.problems import AuditDpsgdEpsilon, AuditDpsgdNoise, AuditEpsilon, AuditMu, level
from privcore.auditing.programme import profile_of, too_many_guesses
from privcore.auditing.programme_search import largest_mu
from privcore.auditing.tightest import AuditingTightest, counts_of, programme_cost
from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioDistribution
from privcore.method import Cost, Direction, Method
from privcore.numerics.binomial import Array
from privcore.numerics.rounding import AUDIT_SEARCH
from privcore.papers import MAHLOUJIFAR

_LAWS, _TESTS = 6.0, 16.0
"""Distributions for the programme, as a multiple of those for Algorithm 3, and tests of a privacy curve."""


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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
