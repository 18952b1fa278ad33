"""Problems about planning an audit, about audits by several runs, about DP-SGD, and about a training."""

from dataclasses import dataclass
from types import MappingProxyType
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
from privcore.constraint import AtMost
from privcore.problem import falls, grows, proved

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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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
