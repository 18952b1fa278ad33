"""Problems about audits: counts of one run, their p-values, several runs, plans, a training; and designs."""

import math
from types import MappingProxyType
from typing import Annotated

from privcore import params
from privcore.answer import Answer
from privcore.auditing import params as audit_params
from privcore.constraint import AtMost, Constraint, OneOf
from privcore.method import Cost
from privcore.numerics.rounding import AUDIT_SEARCH, SHORT_FORMULA, probability_at_most
from privcore.problem import Problem, falls, grows, proved

PAIRS = "pairs"
EXACTLY_HALF = "exactly-half"

STATED = (
    "independent (each canary in or out by its own fair coin: refutes add-remove), exactly-half (a uniformly "
    "random half of the canaries is in: add-remove, with larger p-values) or pairs (one record of each pair "
    "is in, by a fair coin: refutes replace-one only)"
)
"""The designs with two alternatives and their effect, for users, who state one."""


def relation(alternatives: int, design: str) -> str:
    """Return the neighbouring relation that an audit of this design refutes.

    Example:
        >>> [relation(k, design) for k, design in ((2, "independent"), (2, "pairs"), (5, "independent"))]
        ['add-remove', 'replace-one', 'replace-one']
    """
    return "add-remove" if alternatives == 2 and design != PAIRS else "replace-one"


def probability_of_half(canaries: int) -> float:
    r"""Return the probability that independent fair coins include exactly half of the canaries, rounded down.

    $$\binom{2n}{n} 4^{-n} \ge \frac{1}{\sqrt{\pi (n + 4 / \pi - 1)}}$$

    Independent coins, given that half of them are heads, are a uniformly random half. So an event whose
    probability under independent coins is p has at most the probability p divided by this number if exactly
    half of the canaries are included. For an odd number of canaries, half is rounded down or up.

    Args:
        canaries: Number m of canaries, >= 1; n is m / 2, rounded up.

    Returns:
        Probability in (0, 1/2], at most 0.3 % too small.

    Reference:
        Chen and Qi (2005), The best bounds in Wallis' inequality, Proc. Amer. Math. Soc. 133, 397-401.

    Example:
        >>> round(probability_of_half(10), 4), round(math.comb(10, 5) / 2**10, 4)
        (0.2457, 0.2461)
    """
    n = (canaries + 1) // 2
    return (1.0 - SHORT_FORMULA) / math.sqrt(math.pi * (n + 4.0 / math.pi - 1.0))


MORE_CORRECT = "The events of at least c correct guesses are nested."
LESS_PRIVATE = "Every mechanism that is private at a parameter is private at every larger parameter."

FEWER_GUESSES: tuple[Constraint, ...] = (AtMost("guesses", "canaries"),)


class AuditProblem(Problem):
    """Base of all problems about audits."""

    topic = "auditing"

    def relation(self) -> str:
        """Return the neighbouring relation of the guarantee under audit, which follows from the design."""
        return relation(getattr(self, "alternatives", 2), getattr(self, "design", "independent"))


class GuessedCanaries(AuditProblem):
    """Base of the problems with c' guesses about m canaries."""

    constraints = FEWER_GUESSES

    canaries: Annotated[int, audit_params.CANARIES]
    guesses: Annotated[int, audit_params.GUESSES]


class Counts(GuessedCanaries):
    """Base of the problems with m canaries, at most c' guesses and c correct guesses.

    The number of guesses is fixed beforehand, and m counts all canaries with randomised inclusion, including
    those without a guess. The design says how inclusion was randomised.
    """

    constraints = (
        *FEWER_GUESSES,
        AtMost("correct", "guesses"),
        OneOf(
            "alternatives",
            (2,),
            message="Expected alternatives=2 for design={design}, got {alternatives}.",
            where=OneOf("design", (EXACTLY_HALF, PAIRS)),
        ),
    )
    stated = MappingProxyType({"design": STATED})

    correct: Annotated[int, audit_params.CORRECT]
    alternatives: Annotated[int, audit_params.ALTERNATIVES] = 2
    design: Annotated[str, audit_params.DESIGN] = "independent"

    @property
    def counts(self) -> tuple[float, float, float, float]:
        """Canaries, guesses, correct guesses and alternatives, as arguments of the compiled recursion."""
        return float(self.canaries), float(self.guesses), float(self.correct), float(self.alternatives)

    @property
    def share(self) -> float:
        """Probability with which independent coins include as many canaries as the design, rounded down.

        An event whose probability is p for independent coins has at most the probability p / share.
        """
        return probability_of_half(self.canaries) if self.design == EXACTLY_HALF else 1.0


class AuditEpsilon(Counts):
    """Largest epsilon, at this delta, that the number of correct guesses refutes.

    The probability that the true epsilon is smaller is at most 1 - confidence over the run, for every
    mechanism.
    """

    name = "audit-epsilon"
    asks = "epsilon"

    delta: Annotated[float, audit_params.AUDIT_DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95


class AuditMu(Counts):
    """Largest mu of Gaussian differential privacy that the number of correct guesses refutes.

    If the mechanism is mu-GDP, the probability that its true mu is smaller is at most 1 - confidence.
    """

    name = "audit-mu"
    asks = "mu"
    monotone = proved(correct=grows(MORE_CORRECT))

    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95


class AuditDpsgdNoise(Counts):
    """Smallest noise multiplier of DP-SGD that the number of correct guesses refutes.

    The sampling and the number of steps are as for `audit-dpsgd-epsilon`. If the mechanism is DP-SGD, the
    probability that its true noise multiplier is larger is at most 1 - confidence.
    """

    name = "audit-dpsgd-noise"
    asks = "noise_multiplier"

    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    steps: Annotated[int, params.STEPS]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95


class AuditDpsgdEpsilon(Counts):
    """Largest epsilon, at this delta, refuted by correct guesses for DP-SGD of unknown noise multiplier.

    In DP-SGD every Gaussian step includes every example with the same probability. If the mechanism is
    DP-SGD, the probability that its true epsilon is smaller is at most 1 - confidence.
    """

    name = "audit-dpsgd-epsilon"
    asks = "epsilon"

    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    steps: Annotated[int, params.STEPS]
    delta: Annotated[float, params.DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95


class AuditTail(Counts):
    """p-value of a claim: largest probability of at least this many correct guesses under it."""

    name = "audit-tail"
    asks = "probability"
    largest = 1.0
    monotone = proved(
        correct=falls(MORE_CORRECT), claimed_epsilon=grows(LESS_PRIVATE), delta=grows(LESS_PRIVATE)
    )

    claimed_epsilon: Annotated[float, params.CLAIMED_EPSILON]
    delta: Annotated[float, audit_params.AUDIT_DELTA]


class AuditGaussianTail(Counts):
    """p-value of mu-GDP: largest probability of at least this many correct guesses under it."""

    name = "audit-gaussian-tail"
    asks = "probability"
    largest = 1.0
    monotone = proved(correct=falls(MORE_CORRECT), mu=grows(LESS_PRIVATE))

    mu: Annotated[float, audit_params.MU]


MOST = 700.0
"""Largest epsilon that an audit reports."""
LEAST = 1e-12
"""Epsilons and mus below it are reported as 0, since searches end about 1e-13 above them."""


def refuted(problem: AuditEpsilon, epsilon: float, detail: str) -> Answer:
    """Return the answer of an audit: at least this epsilon, at the confidence of the problem."""
    if epsilon > MOST:
        return Answer.at_least(
            MOST, confidence=problem.audit_confidence, detail=f"{detail}; every epsilon is refuted"
        )
    proved = epsilon * (1.0 - AUDIT_SEARCH) if epsilon > LEAST else 0.0
    return Answer.at_least(proved, confidence=problem.audit_confidence, detail=detail)


def level(problem: "AuditEpsilon | AuditMu | AuditDpsgdEpsilon") -> float:
    """Return the largest probability, for independent coins, of counts that refute a claim."""
    return (1.0 - problem.audit_confidence) * problem.share


def unlikely_at_most(problem: Counts, probability: float, detail: str) -> Answer:
    """Return an upper bound of a p-value from that for independent coins, rounded up."""
    bound = probability_at_most(probability / problem.share, AUDIT_SEARCH, 1e-300)
    return Answer.at_most(min(1.0, bound), detail=detail)


def recursion_cost(problem: Counts) -> Cost:
    """Return the cost of a search with Algorithm 3, which needs few steps for many correct guesses."""
    steps = min(problem.correct, 2000) + 10.0 * problem.canaries**0.5  # the second term for close decisions
    return Cost(seconds=0.01 + 1e-5 * steps, bytes=1e6)


CountTail = AuditTail | AuditGaussianTail
"""The probability of this many correct guesses, under either hypothesis."""


_STRICTER = "A higher confidence requires a smaller p-value."

_OF_GUESSING = (
    "clearest (the scores farthest from a known centre) or halves (as many of the highest as of the lowest "
    "scores, as `privsweep audit` guesses); with a known centre, more guesses are correct"
)

_OF_NUMBER = (
    "fixed (exactly c' guesses, as audits in one run make them) or random (c' is the expected number of "
    "guesses, about all canaries beyond fixed thresholds; a little more of them are correct)"
)

_REFUTABLE = proved(delta=falls(LESS_PRIVATE), audit_confidence=falls(_STRICTER))


class AuditExpectedCorrect(GuessedCanaries):
    """Largest expected number of correct guesses, among c' guesses, about a mu-GDP mechanism.

    For guesses of inclusion, k = 2, an attack by likelihood ratios on independent Gaussian canaries attains
    it if c' is the expected number of guesses. If exactly c' guesses are made, this attack has a few less,
    and the largest number is between both. For more alternatives, mu is the privacy of replacing one record
    by another.
    """

    name = "audit-expected-correct"
    asks = "correct"
    monotone = proved(mu=grows(LESS_PRIVATE))
    stated = MappingProxyType({"guess_number": _OF_NUMBER})

    guesses: Annotated[int, audit_params.PLANNED_GUESSES]
    mu: Annotated[float, audit_params.MU]
    alternatives: Annotated[int, audit_params.ALTERNATIVES] = 2
    guess_number: Annotated[str, audit_params.GUESS_NUMBER] = "random"


class AuditCeiling(Counts):
    r"""Largest epsilon that a valid audit can refute from these counts.

    This is the largest epsilon at which no private mechanism and attacker have this many correct guesses with
    probability above 1 - confidence, or 0. For the Gaussian family, private means mu-GDP, and epsilon is that
    of mu at delta. The limit holds for every design; the audit that attains it is that of the design.
    """

    name = "audit-ceiling"
    asks = "epsilon"
    stated = MappingProxyType({})
    monotone = proved(**_REFUTABLE, correct=grows(MORE_CORRECT))

    delta: Annotated[float, audit_params.AUDIT_DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95
    family: Annotated[str, audit_params.NULL_FAMILY] = "approximate"


class AuditPlannedEpsilon(GuessedCanaries):
    """Largest epsilon that a valid audit can refute if the number of correct guesses is the expected number.

    The expected number is that of `audit-expected-correct`, rounded to the nearest whole number: the optimal
    attacker guesses about the clearest scores of independent Gaussian canaries, from a known centre.
    """

    name = "audit-planned-epsilon"
    asks = "epsilon"
    monotone = _REFUTABLE

    mu: Annotated[float, audit_params.MU]
    delta: Annotated[float, audit_params.AUDIT_DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95
    family: Annotated[str, audit_params.NULL_FAMILY] = "approximate"


class AuditBestGuesses(AuditProblem):
    """Number of guesses that refutes the largest epsilon if the mean number of them, rounded, is correct.

    The attacker guesses about the canaries with the clearest scores, from a known centre, or about the same
    number of highest and lowest scores, as `privsweep audit` does, which is an even number. The canaries are
    independent and Gaussian.
    """

    name = "audit-best-guesses"
    asks = "guesses"
    largest = float(audit_params.CANARIES.upper)
    stated = MappingProxyType(
        {
            "family": "approximate ((epsilon, delta)-DP of any mechanism) or gaussian (Gaussian differential "
            "privacy), the claim that the audit refutes; the best number of guesses depends on it",
            "guessing": _OF_GUESSING,
        }
    )

    canaries: Annotated[int, audit_params.CANARIES]
    mu: Annotated[float, audit_params.MU]
    delta: Annotated[float, audit_params.AUDIT_DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95
    family: Annotated[str, audit_params.NULL_FAMILY] = "approximate"
    guessing: Annotated[str, audit_params.GUESSING] = "clearest"


class AuditPower(GuessedCanaries):
    """Probability that an audit refutes a claim, for independent Gaussian canaries with the true mu.

    The attacker guesses about the canaries with the clearest scores, or about the same number of highest and
    lowest scores. The claim is refuted by Algorithm 3 or by the bound of Steinke et al., or also by the
    linear programme, whichever needs fewer correct guesses. For the Gaussian family, Algorithm 3, or also the
    programme, must refute the mu whose epsilon at delta is the claim.
    """

    name = "audit-power"
    asks = "probability"
    largest = 1.0
    stated = MappingProxyType({"guessing": _OF_GUESSING})

    mu: Annotated[float, audit_params.MU]
    claimed_epsilon: Annotated[float, params.CLAIMED_EPSILON]
    delta: Annotated[float, audit_params.AUDIT_DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95
    family: Annotated[str, audit_params.NULL_FAMILY] = "approximate"
    guessing: Annotated[str, audit_params.GUESSING] = "clearest"
    refutation: Annotated[str, audit_params.REFUTATION] = "published"


class AuditRunsEpsilon(AuditProblem):
    """Largest epsilon, at this delta, refuted by an attack's error rates over many runs.

    Some runs have a canary in their data and the others do not; for each run the attack decides whether the
    canary is in. Runs are independent, and their numbers, the canary and the attack with its threshold are
    fixed beforehand. The probability that the true epsilon is smaller is at most 1 - confidence over all
    runs, for every mechanism.
    """

    name = "audit-runs-epsilon"
    asks = "epsilon"
    constraints = (AtMost("true_positives", "runs_with"), AtMost("false_positives", "runs_without"))

    runs_with: Annotated[int, audit_params.RUNS_WITH]
    true_positives: Annotated[int, audit_params.TRUE_POSITIVES]
    runs_without: Annotated[int, audit_params.RUNS_WITHOUT]
    false_positives: Annotated[int, audit_params.FALSE_POSITIVES]
    delta: Annotated[float, audit_params.AUDIT_DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95


class AuditDpsgdCorrect(GuessedCanaries):
    """Expected number of correct guesses about canaries of DP-SGD, if scores are sums over the steps.

    Every canary has a separate coordinate. In each step, a canary in the data adds its clipped gradient, of
    norm 1, with the sampling probability, and the coordinate gets noise of standard deviation sigma. The
    canaries with the highest sums are guessed to be in, those with the lowest sums to be out: exactly c'/2
    each (for an odd c' one more is guessed to be in), or all beyond thresholds beyond which c'/2 each are
    expected.
    """

    name = "audit-dpsgd-correct"
    asks = "correct"
    stated = MappingProxyType({"guess_number": _OF_NUMBER})

    guesses: Annotated[int, audit_params.PLANNED_GUESSES]
    sigma: Annotated[float, params.SIGMA]
    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    steps: Annotated[int, params.STEPS]
    guess_number: Annotated[str, audit_params.GUESS_NUMBER] = "random"


class AuditTraining(AuditProblem):
    """Largest epsilon, at this delta, refuted by the audit of a training run.

    The training is DP-SGD with Poisson batches, with or without a bug, on a small real data set and on
    canaries, each included with probability 1/2. The probability that the true epsilon is smaller is at most
    1 - confidence over the inclusions, the batches and the noise. The claim of the training is not part of
    the problem: a refuted epsilon above the claim detects a bug. Runs with other numbers are independent
    trainings of the same kind.
    """

    name = "audit-training"
    asks = "epsilon"
    constraints = FEWER_GUESSES

    sigma: Annotated[float, params.SIGMA]
    steps: Annotated[int, params.STEPS]
    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    canaries: Annotated[int, audit_params.CANARIES]
    guesses: Annotated[int, audit_params.GUESSES]
    delta: Annotated[float, params.DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95
    bug: Annotated[str, audit_params.BUG] = "none"
    run: Annotated[int, audit_params.RUN] = 0
