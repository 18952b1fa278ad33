"""Questions before an audit, about several runs, about DP-SGD with every step seen, and about a training."""

from dataclasses import dataclass
from typing import Annotated

from privcore import params
from privcore.auditing import params as audit_params
from privcore.auditing.problems import (
    FEWER_GUESSES,
    LESS_PRIVATE,
    MORE_CORRECT,
    AuditProblem,
    Counts,
    GuessedCanaries,
)
from privcore.problem import AtMost, falls, grows, proved

_STRICTER = "A higher confidence requires a smaller p-value."

_REFUTABLE = proved(delta=falls(LESS_PRIVATE), audit_confidence=falls(_STRICTER))


@dataclass(frozen=True, kw_only=True)
class AuditExpectedCorrect(GuessedCanaries):
    """Largest expected number of correct guesses about a mu-GDP mechanism, c' guesses being expected.

    For inclusion, k = 2, independent Gaussian canaries and likelihood ratios attain it. For more alternatives
    mu is the privacy of replacing a record by another one.
    """

    name = "audit-expected-correct"
    asks = "correct"
    monotone = proved(mu=grows(LESS_PRIVATE))

    mu: Annotated[float, audit_params.MU]
    alternatives: Annotated[int, audit_params.ALTERNATIVES] = 2


@dataclass(frozen=True, kw_only=True)
class AuditCeiling(Counts):
    r"""Largest epsilon that a valid audit can refute from these counts: no audit can report more.

    It is the largest at which no private mechanism and attacker have so many correct guesses with more than
    probability 1 - confidence, or 0. In the Gaussian family private means mu-GDP, and the epsilon is that of
    mu at delta.
    """

    name = "audit-ceiling"
    asks = "epsilon"
    monotone = proved(**_REFUTABLE, correct=grows(MORE_CORRECT))

    delta: Annotated[float, params.DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95
    family: Annotated[str, audit_params.NULL_FAMILY] = "approximate"


@dataclass(frozen=True, kw_only=True)
class AuditPlannedEpsilon(GuessedCanaries):
    """Largest epsilon that a valid audit can refute where as many inclusion guesses are correct as expected.

    As many as an optimal attacker on independent Gaussian canaries expects, rounded to the nearest number.
    """

    name = "audit-planned-epsilon"
    asks = "epsilon"
    monotone = _REFUTABLE

    mu: Annotated[float, audit_params.MU]
    delta: Annotated[float, params.DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95
    family: Annotated[str, audit_params.NULL_FAMILY] = "approximate"


@dataclass(frozen=True, kw_only=True)
class AuditBestGuesses(AuditProblem):
    """Number of inclusion guesses, an even one, with which an audit refutes the largest epsilon.

    Where as many are correct as an optimal attacker on independent Gaussian canaries expects.
    """

    name = "audit-best-guesses"
    asks = "guesses"
    largest = float(audit_params.CANARIES.upper)

    canaries: Annotated[int, audit_params.CANARIES]
    mu: Annotated[float, audit_params.MU]
    delta: Annotated[float, params.DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95
    family: Annotated[str, audit_params.NULL_FAMILY] = "approximate"


@dataclass(frozen=True, kw_only=True)
class AuditPower(GuessedCanaries):
    """Probability that an audit refutes a claim about independent Gaussian canaries of another mu.

    The attacker guesses about the canaries with the clearest scores, and the claim is refuted by Algorithm 3
    or by the bound of Steinke et al., whichever needs fewer correct guesses. In the Gaussian family Algorithm
    3 has to refute the mu of which the claim is the epsilon at delta.
    """

    name = "audit-power"
    asks = "probability"
    largest = 1.0

    mu: Annotated[float, audit_params.MU]
    claimed_epsilon: Annotated[float, params.CLAIMED_EPSILON]
    delta: Annotated[float, params.DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95
    family: Annotated[str, audit_params.NULL_FAMILY] = "approximate"


@dataclass(frozen=True, kw_only=True)
class AuditRunsEpsilon(AuditProblem):
    """Epsilon at this delta that an attack refutes over many runs: the truth is larger, but for an error.

    Some runs have one canary in their data and the others do not; the attack says of each whether it is in.
    Runs are independent, and their numbers, the canary and the attack with its threshold are fixed before.
    The error has a probability of at most 1 - confidence over all runs, whatever the mechanism is.
    """

    name = "audit-runs-epsilon"
    asks = "epsilon"
    constraints = (AtMost("true_positives", "runs_with"), AtMost("false_positives", "runs_without"))

    runs_with: Annotated[int, audit_params.RUNS_WITH]
    true_positives: Annotated[int, audit_params.TRUE_POSITIVES]
    runs_without: Annotated[int, audit_params.RUNS_WITHOUT]
    false_positives: Annotated[int, audit_params.FALSE_POSITIVES]
    delta: Annotated[float, params.DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95


@dataclass(frozen=True, kw_only=True)
class AuditDpsgdCorrect(GuessedCanaries):
    """Expected number of correct guesses about canaries of DP-SGD by scores that are summed over its steps.

    Every canary that is in has a coordinate of its own, to which a step adds its clipped gradient, of norm 1,
    with the sampling probability, and noise of deviation sigma. The c'/2 highest sums are guessed to be in,
    and the c'/2 lowest ones out, by thresholds beyond which that many are expected.
    """

    name = "audit-dpsgd-correct"
    asks = "correct"

    sigma: Annotated[float, params.SIGMA]
    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    steps: Annotated[int, params.STEPS]


@dataclass(frozen=True, kw_only=True)
class AuditTraining(AuditProblem):
    """Epsilon at this delta that the audit of a training refutes: its own is larger, but for an error.

    The training is DP-SGD on a small real data set and on canaries, each included with probability 1/2, with
    Poisson batches, and with a bug or without. The error has a probability of at most 1 - confidence over the
    inclusions, the batches and the noise. What the training claims is no part of the question: a refuted
    epsilon above the claim catches a bug. Runs of other numbers are other trainings of the same kind.
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
