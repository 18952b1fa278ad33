"""Audits by counts of one run, by Algorithm 3 and by Steinke et al., and by the error rates of many runs.

The p-values of `auditing.revealed` use the bound of Steinke, Nasr and Jagielski at one (epsilon, delta), or
along the privacy curve of a Gaussian.
"""

import math
from typing import get_args

import numpy as np

from privcore.answer import Answer
from privcore.auditing.exact import exact_epsilon, exact_tail
from privcore.auditing.optimal import few_errors
from privcore.auditing.problems import (
    MOST,
    AuditDpsgdEpsilon,
    AuditEpsilon,
    AuditGaussianTail,
    AuditMu,
    AuditRunsEpsilon,
    AuditTail,
    CountTail,
    level,
    recursion_cost,
    refuted,
    unlikely_at_most,
)
from privcore.auditing.recursion import APPROXIMATE, GAUSSIAN, LAPLACE, largest_refuted
from privcore.method import Cost, Direction, Method
from privcore.numerics.binomial import window
from privcore.numerics.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds
from privcore.numerics.pairs_of_rates import GaussianRates, RatesBelow
from privcore.numerics.rounding import AUDIT_SEARCH, BINOMIAL_WINDOW, FEW_FUNCTIONS, probability_at_most
from privcore.numerics.two_rates import TwoSamples, joint_cost
from privcore.numerics.two_rates import refuted as refuted_by_rates
from privcore.papers import MAHLOUJIFAR, NASR, STEINKE, XIANG


def revealed_tail(
    canaries: int, guesses: int, correct: int, epsilon: float, delta: float, alternatives: int = 2
) -> float:
    r"""Return their bound of the probability of this many correct guesses under (epsilon, delta)-DP.

    $$\Pr[B \ge c] + 2 m \delta \max_{1 \le i \le c} \frac 1i \Pr[c > B \ge c - i], \qquad
      B \sim \mathrm{Bin}(c', 1 / (1 + (k - 1) e^{-\varepsilon}))$$

    Their theorem has k = 2. At $\delta = 0$ its proof holds for every k: given the output and the earlier
    canaries, the probabilities of two alternatives differ by a factor of at most $e^\varepsilon$, so a guess
    is correct with probability at most $1 / (1 + (k - 1) e^{-\varepsilon})$.

    At $\delta > 0$ their bound can be too small where it is near 1: for one correct guess of 8 about 8
    canaries at epsilon 0 and delta 1/255 it is 0.9963, but the mechanism that publishes any bits other than
    the complement of the true ones, all equally likely, is private and always has a correct guess. The proof
    takes the gains from delta as independent of the other guesses, but a mechanism can make them only where a
    correct guess is lacking. So the bound here is at least that of `exact_tail`.

    Args:
        canaries: Number m of canaries.
        guesses: Number c' of guesses.
        correct: Number c of correct guesses.
        epsilon: In nats, >= 0.
        delta: In [0, 1].
        alternatives: Number k of alternatives of a canary, >= 2; 2 unless delta is 0.

    Returns:
        Upper bound in [0, 1], rounded up.

    Reference:
        Steinke, Nasr and Jagielski (2023), arXiv:2305.08846v1, Theorem 5.2.

    Example:
        >>> round(revealed_tail(1000, 100, 90, 1.0, 0.0), 9)
        2.7358e-05
    """
    if correct == 0:
        return 1.0
    law = window(guesses, 1.0 / (1.0 + (alternatives - 1.0) * math.exp(-epsilon)))
    probability = law.at_least(correct)
    if delta > 0.0:
        below = law.law[: max(0, correct - law.first)][::-1]  # of c - 1, c - 2, ...
        nearest = correct - (law.first + below.size - 1)  # 1, or more where c is above the window
        distances = nearest + np.arange(below.size)
        share = float((np.cumsum(below) / distances).max(initial=0.0))
        # Probabilities below the window are bounded as if they were at distance 1 from c.
        share = max(share, 1e-290)
        probability += 2.0 * canaries * delta * share
        probability = max(probability, exact_tail(canaries, guesses, correct, epsilon, delta)[1])
    slack = BINOMIAL_WINDOW * (1.0 if alternatives == 2 else 2.0)
    return probability_at_most(probability, slack, 1e-290)


def only_pure(problem: AuditEpsilon | CountTail) -> str | None:
    """Return the reason why their theorem does not apply to several alternatives, or None."""
    if problem.alternatives == 2 or (not isinstance(problem, AuditGaussianTail) and problem.delta == 0.0):
        return None
    return "The theorem is for guesses of inclusion (alternatives=2); at delta=0 it holds for any number."


_POINTS = 120


class AuditingRevealed(Method[CountTail]):
    r"""Bound of Steinke et al. at the claimed level, or its minimum over the curve of a Gaussian mechanism.

    A mechanism that is mu-GDP is $(\varepsilon, \delta(\varepsilon))$-DP for every epsilon, and all these
    bounds are for the probability of the same event: their minimum holds, without a correction for the
    search.
    """

    name = "auditing.revealed"
    version = 2
    problems = get_args(CountTail)
    direction = Direction.UPPER
    reference = f"{STEINKE}, Theorem 5.2, where its bound is valid"

    def applies(self, problem: CountTail) -> str | None:
        return only_pure(problem)

    def cost(self, problem: CountTail) -> Cost:
        points = 1.0 if isinstance(problem, AuditTail) else 2.0 * _POINTS
        root = problem.guesses**0.5
        return Cost(seconds=0.01 + points * (2e-4 + 2e-6 * root), bytes=2e6 + 4e4 * root)

    def answer(self, problem: CountTail, seed: int) -> Answer:
        counts = problem.canaries, problem.guesses, problem.correct
        if isinstance(problem, AuditTail):
            bound = revealed_tail(*counts, problem.claimed_epsilon, problem.delta, problem.alternatives)
            return unlikely_at_most(problem, bound, "bound of Steinke et al.")
        if problem.mu == 0.0:
            return unlikely_at_most(problem, revealed_tail(*counts, 0.0, 0.0), "coin flips")

        def at(epsilon: float) -> float:
            return revealed_tail(*counts, epsilon, gaussian_delta_bounds(1.0 / problem.mu, epsilon)[1])

        # At `largest`, delta is far below 1 / m^2, so larger epsilons do not help.
        largest = problem.mu * (0.5 * problem.mu + 12.0)
        coarse = np.linspace(0.0, largest, _POINTS).tolist()
        values = [at(x) for x in coarse]
        best = int(np.argmin(values))
        left, right = coarse[max(0, best - 1)], coarse[min(_POINTS - 1, best + 1)]
        fine = np.linspace(left, right, _POINTS).tolist()
        found, where = min((at(x), x) for x in fine)
        found, where = min((found, where), (values[best], coarse[best]))
        return unlikely_at_most(problem, found, f"bound of Steinke et al. at epsilon {where:.4g}")


class AuditingSteinke(Method[AuditEpsilon]):
    """Refute (epsilon, delta)-DP if their bound of the probability of the count is below 1 - confidence.

    The bound, which is at least that of `auditing.exact` here, grows with epsilon, so the largest refuted
    epsilon is found by bisection.
    """

    name = "auditing.steinke"
    problems = (AuditEpsilon,)
    direction = Direction.LOWER
    reference = f"{STEINKE}, Theorem 5.2"

    def applies(self, problem: AuditEpsilon) -> str | None:
        return only_pure(problem)

    def cost(self, problem: AuditEpsilon) -> Cost:
        return Cost(seconds=0.03 + 1.5e-4 * problem.guesses**0.5, bytes=2e6 + 4e4 * problem.guesses**0.5)

    def answer(self, problem: AuditEpsilon, seed: int) -> Answer:
        tau = level(problem)

        def refutes(epsilon: float) -> bool:
            counts = problem.canaries, problem.guesses, problem.correct
            return revealed_tail(*counts, epsilon, problem.delta, problem.alternatives) < tau

        if not refutes(0.0):
            return refuted(problem, 0.0, "bound of Steinke et al.")
        low, high = 0.0, 1.0
        while refutes(high):
            low, high = high, 2.0 * high
            if low >= MOST:
                break
        while high - low > 1e-11 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if refutes(middle) else (low, middle)
        return refuted(problem, low, "bound of Steinke et al.")


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


class AuditingIndependent(Method[AuditEpsilon]):
    """Largest mu at which independent Gaussian scores have this few errors with probability 1 - confidence.

    Under the assumption of independence the audit is exact, and its value is far above every valid audit
    without it. A mu-GDP mechanism whose canaries are guessed correctly all together or not at all is refuted
    far too often: so the value is an estimate, even at a high confidence.
    """

    name = "auditing.independent"
    problems = (AuditEpsilon,)
    direction = Direction.ESTIMATE
    reference = XIANG

    def applies(self, problem: AuditEpsilon) -> str | None:
        if problem.delta == 0.0:
            return no_gaussian_epsilon(problem.delta)
        if problem.alternatives != 2 or problem.design != "independent":
            return "The distribution of the scores is for coins of inclusion (alternatives=2, independent)."
        return None if problem.guesses > 0 else "The audit needs at least one guess."

    def cost(self, problem: AuditEpsilon) -> Cost:
        return Cost(seconds=0.1, bytes=2e6)

    def answer(self, problem: AuditEpsilon, seed: int) -> Answer:
        errors, tau = problem.guesses - problem.correct, level(problem)

        def unlikely(mu: float) -> bool:
            return few_errors(problem.canaries, problem.guesses, errors, mu) <= tau

        low, high = 0.0, 30.0
        if not unlikely(0.0):
            high = 0.0
        while high - low > 1e-10 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if unlikely(middle) else (low, middle)
        return Answer.about(
            epsilon_of(low, problem.delta),
            detail=f"assumes independent canaries: mu = {low:.6g} at {1.0 - tau:.4g} confidence",
        )


class AuditingRuns(Method[AuditRunsEpsilon]):
    r"""Refute, by a joint test of both error rates, each form of the definition with half of the error.

    $$\mathrm{TPR} \le e^\varepsilon\, \mathrm{FPR} + \delta, \qquad
      \mathrm{TNR} \le e^\varepsilon\, \mathrm{FNR} + \delta$$

    Each is the definition of $(\varepsilon, \delta)$-DP for one event: a positive or a negative run. An
    epsilon is refuted if one form is: if the counts refute every pair of rates that satisfies it. The runs
    with the canary are independent of those without.
    """

    name = "auditing.runs"
    problems = (AuditRunsEpsilon,)
    direction = Direction.LOWER
    reference = (
        "Stouffer's combination of the tests of both rates; Berger and Boos (1994), JASA 89, 1012-1016; "
        "definition of differential privacy"
    )
    version = 2

    def cost(self, problem: AuditRunsEpsilon) -> Cost:
        return joint_cost(problem.runs_with, problem.runs_without)

    def answer(self, problem: AuditRunsEpsilon, seed: int) -> Answer:
        missed = problem.runs_with - problem.true_positives
        left = problem.runs_without - problem.false_positives
        forms = {
            "positive": TwoSamples(
                many=problem.true_positives,
                trials=problem.runs_with,
                few=problem.false_positives,
                others=problem.runs_without,
            ),
            "negative": TwoSamples(
                many=left, trials=problem.runs_without, few=missed, others=problem.runs_with
            ),
        }
        error = 0.5 * (1.0 - problem.audit_confidence)
        found = {
            name: refuted_by_rates(counts, lambda epsilon: _private(epsilon, problem.delta), MOST, error)
            for name, counts in forms.items()
        }
        better = max(found, key=lambda name: found[name])
        detail = f"by the numbers of {better} runs" if found[better] > 0.0 else "nothing is refuted"
        return Answer.at_least(found[better], confidence=problem.audit_confidence, detail=detail)


def _private(epsilon: float, delta: float) -> RatesBelow:
    """Return the pairs of rates of one event that a private mechanism may have."""
    return RatesBelow(slope=math.exp(epsilon) * (1.0 + FEW_FUNCTIONS), height=delta)


class AuditingNasr(Method[AuditRunsEpsilon]):
    r"""Epsilon of the least private Gaussian mechanism that the error rates refute, by a joint test.

    $$\mathrm{TPR} \le \Phi(\Phi^{-1}(\mathrm{FPR}) + \mu)$$

    The same inequality holds for the rates of negative guesses, since it says the same, so one test has the
    whole error. Refuting mu-GDP does not refute its epsilon at delta, unless the mechanism is Gaussian: the
    value is an estimate that depends on the model.
    """

    name = "auditing.nasr"
    problems = (AuditRunsEpsilon,)
    direction = Direction.ESTIMATE
    reference = f"{NASR}; Stouffer's combination of the tests of both rates, as in auditing.runs"
    version = 2

    def applies(self, problem: AuditRunsEpsilon) -> str | None:
        return no_gaussian_epsilon(problem.delta)

    def cost(self, problem: AuditRunsEpsilon) -> Cost:
        return joint_cost(problem.runs_with, problem.runs_without)

    def answer(self, problem: AuditRunsEpsilon, seed: int) -> Answer:
        counts = TwoSamples(
            many=problem.true_positives,
            trials=problem.runs_with,
            few=problem.false_positives,
            others=problem.runs_without,
        )
        mu = refuted_by_rates(
            counts, lambda mu: GaussianRates(mu=mu), _MOST_MU, 1.0 - problem.audit_confidence
        )
        detail = f"model-based: mu = {mu:.6g} of Gaussian noise, confidence {problem.audit_confidence:.4g}"
        return Answer.about(epsilon_of(mu, problem.delta), detail=detail)
