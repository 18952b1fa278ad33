"""Problems about the counts of an audit in one run: the epsilon that they refute, and their p-values."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from privcore import params
from privcore.answer import Answer
from privcore.auditing import designs
from privcore.auditing import params as audit_params
from privcore.constraint import AtMost, Constraint, OneOf
from privcore.method import Cost
from privcore.numerics.rounding import AUDIT_SEARCH, probability_at_most
from privcore.problem import Problem, falls, grows, proved

MORE_CORRECT = "The events of at least c correct guesses are nested."
LESS_PRIVATE = "Every mechanism that is private at a parameter is private at every larger parameter."

FEWER_GUESSES: tuple[Constraint, ...] = (AtMost("guesses", "canaries"),)


@dataclass(frozen=True, kw_only=True)
class AuditProblem(Problem):
    """Base of all problems about audits."""

    topic = "auditing"

    def relation(self) -> str:
        """Return the neighbouring relation of the guarantee under audit, which follows from the design."""
        return designs.relation(getattr(self, "alternatives", 2), getattr(self, "design", "independent"))


@dataclass(frozen=True, kw_only=True)
class GuessedCanaries(AuditProblem):
    """Base of the problems with c' guesses about m canaries."""

    constraints = FEWER_GUESSES

    canaries: Annotated[int, audit_params.CANARIES]
    guesses: Annotated[int, audit_params.GUESSES]


@dataclass(frozen=True, kw_only=True)
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
            where=OneOf("design", (designs.EXACTLY_HALF, designs.PAIRS)),
        ),
    )
    stated = MappingProxyType({"design": designs.STATED})

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
        return designs.probability_of_half(self.canaries) if self.design == designs.EXACTLY_HALF else 1.0


@dataclass(frozen=True, kw_only=True)
class AuditEpsilon(Counts):
    """Largest epsilon, at this delta, that the number of correct guesses refutes.

    The probability that the true epsilon is smaller is at most 1 - confidence over the run, for every
    mechanism.
    """

    name = "audit-epsilon"
    asks = "epsilon"

    delta: Annotated[float, audit_params.AUDIT_DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95


@dataclass(frozen=True, kw_only=True)
class AuditMu(Counts):
    """Largest mu of Gaussian differential privacy that the number of correct guesses refutes.

    If the mechanism is mu-GDP, the probability that its true mu is smaller is at most 1 - confidence.
    """

    name = "audit-mu"
    asks = "mu"
    monotone = proved(correct=grows(MORE_CORRECT))

    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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
