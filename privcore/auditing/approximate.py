"""Audits by Algorithm 3: without a model, for the Gaussian and Laplace families, and with Steinke et al."""

import math
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.auditing.exact import exact_epsilon, exact_tail
from privcore.auditing.problems import (
    MOST,
    AuditDpsgdEpsilon,
    AuditEpsilon,
    AuditMu,
    level,
    recursion_cost,
    refuted,
)
from privcore.auditing.recursion import APPROXIMATE, GAUSSIAN, LAPLACE, largest_refuted
from privcore.auditing.steinke import AuditingSteinke
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import gaussian_epsilon_bounds
from privcore.numerics.rounding import AUDIT_SEARCH
from privcore.papers import MAHLOUJIFAR, STEINKE


@dataclass(frozen=True, kw_only=True)
class AuditingApproximate(Method[AuditEpsilon]):
    r"""Refute (epsilon, delta)-DP if the recursion bounds the probability of the count by 1 - confidence.

    (epsilon, delta)-DP is f-DP with
    $f(x) = \max(0, 1 - \delta - e^\varepsilon x, e^{-\varepsilon}(1 - \delta - x))$, so the theorem applies
    to every mechanism, and the audit refutes epsilon itself rather than a parameter of a family. The claims
    are nested in epsilon, so the largest refuted epsilon needs no correction for the search. If p-values
    approach the level without reaching it, as for correct guesses only with $m \delta / c = 1 - $ confidence,
    rounding would decide, so the epsilon is at most that of the exact p-value.
    """

    name = "auditing.approximate"
    problems = (AuditEpsilon,)
    direction = Direction.LOWER
    reference = f"{MAHLOUJIFAR}, Theorem 10 and Algorithm 3, with Proposition 3"
    version = 3

    def cost(self, problem: AuditEpsilon) -> Cost:
        return recursion_cost(problem)

    def answer(self, problem: AuditEpsilon, seed: int) -> Answer:
        tau = level(problem)
        epsilon = largest_refuted(APPROXIMATE, problem.delta, problem.counts, tau, MOST)
        counts = problem.canaries, problem.guesses, problem.correct
        if exact_tail(*counts, epsilon, problem.delta, problem.alternatives)[1] > tau:
            epsilon = min(epsilon, exact_epsilon(problem))
        return refuted(problem, epsilon, "Algorithm 3 for (epsilon, delta)")


_MOST_MU = 60.0


@dataclass(frozen=True, kw_only=True)
class AuditingGaussian(Method[AuditEpsilon]):
    r"""Epsilon of the least private Gaussian mechanism that the counts refute.

    Refuting mu-GDP does not refute the $(\varepsilon, \delta)$ of that mu: a mechanism that is not Gaussian
    may satisfy the latter and still not be mu-GDP. So the value is an estimate that depends on the model and
    may exceed the true epsilon. `auditing.approximate` and `auditing.steinke` do not depend on a model.
    """

    name = "auditing.gaussian"
    problems = (AuditEpsilon,)
    direction = Direction.ESTIMATE
    reference = f"{MAHLOUJIFAR}, Algorithm 3 and Definition 7, Gaussian family"
    version = 2

    def applies(self, problem: AuditEpsilon) -> str | None:
        return no_gaussian_epsilon(problem.delta)

    def cost(self, problem: AuditEpsilon) -> Cost:
        return recursion_cost(problem)

    def answer(self, problem: AuditEpsilon, seed: int) -> Answer:
        mu = refuted_mu(problem)
        return Answer.about(
            epsilon_of(mu, problem.delta),
            detail=f"model-based: mu = {mu:.6g} of Gaussian noise, confidence {problem.audit_confidence:.4g}",
        )


def no_gaussian_epsilon(delta: float) -> str | None:
    """Return the reason why a Gaussian mechanism has no epsilon at this delta, or None."""
    return None if delta > 0.0 else "A Gaussian mechanism has no finite epsilon at delta = 0; see audit-mu."


def no_epsilon_of_family(family: str, delta: float) -> str | None:
    """Return the reason why the mechanisms of a family have no epsilon at this delta, or None."""
    return no_gaussian_epsilon(delta) if family == "gaussian" else None


def refuted_mu(problem: AuditEpsilon | AuditDpsgdEpsilon | AuditMu) -> float:
    """Return the largest mu that the counts refute, rounded down."""
    mu = largest_refuted(GAUSSIAN, 0.0, problem.counts, level(problem), _MOST_MU)
    return min(mu, _MOST_MU) * (1.0 - AUDIT_SEARCH)


def epsilon_of(mu: float, delta: float) -> float:
    """Return the epsilon of a Gaussian mechanism, rounded down; at most 1e4.

    Example:
        >>> round(epsilon_of(1.0, 1e-5), 6)
        4.377178
    """
    return 0.0 if mu < 1e-6 else min(1e4, gaussian_epsilon_bounds(1.0 / mu, delta)[0])


@dataclass(frozen=True, kw_only=True)
class AuditingLaplace(Method[AuditEpsilon]):
    r"""Epsilon at delta of the least private Laplace mechanism that the counts refute.

    With $\varepsilon_0$, the ratio of sensitivity and scale, it is $\varepsilon_0 + 2 \ln(1 - \delta)$. As
    for the Gaussian family, the value depends on the model.
    """

    name = "auditing.laplace"
    problems = (AuditEpsilon,)
    direction = Direction.ESTIMATE
    reference = f"{MAHLOUJIFAR}, Algorithm 3 and Definition 7, Laplace family"
    version = 2

    def cost(self, problem: AuditEpsilon) -> Cost:
        return recursion_cost(problem)

    def answer(self, problem: AuditEpsilon, seed: int) -> Answer:
        tau = level(problem)
        refuted = largest_refuted(LAPLACE, 0.0, problem.counts, tau, MOST)
        pure = min(refuted, MOST) * (1.0 - AUDIT_SEARCH)
        return Answer.about(
            max(0.0, pure + 2.0 * math.log1p(-problem.delta)),
            detail=f"model-based: epsilon_0 = {pure:.6g} of Laplace, "
            f"confidence {problem.audit_confidence:.4g}",
        )


@dataclass(frozen=True, kw_only=True)
class AuditingCombined(Method[AuditEpsilon]):
    """The larger epsilon of Algorithm 3 and of Steinke et al., at the same confidence.

    Both methods bound the probability of the same event under (epsilon, delta)-DP by deterministic numbers,
    so the smaller bound holds, and the larger epsilon needs no correction.
    """

    name = "auditing.combined"
    problems = (AuditEpsilon,)
    direction = Direction.LOWER
    reference = f"{MAHLOUJIFAR}, Theorem 10, and {STEINKE}, Theorem 5.2"
    version = 3
    covers = ("auditing.approximate", "auditing.steinke")

    def cost(self, problem: AuditEpsilon) -> Cost:
        one, other = recursion_cost(problem), AuditingSteinke().cost(problem)
        return Cost(seconds=one.seconds + other.seconds, bytes=one.bytes + other.bytes)

    def answer(self, problem: AuditEpsilon, seed: int) -> Answer:
        answers = [AuditingApproximate().answer(problem, seed)]
        if AuditingSteinke().applies(problem) is None:
            answers.append(AuditingSteinke().answer(problem, seed))
        return max(answers, key=lambda answer: answer.lower)
