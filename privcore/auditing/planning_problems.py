"""What is asked before an audit: how many guesses will be correct, what they would refute, and how surely."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from privcore import params
from privcore.auditing import params as audit_params
from privcore.auditing.problems import AuditProblem, Counts, check_counts
from privcore.problem import Monotone, Trend

_NESTED = "The events of at least so many correct guesses are nested."
_LESS_PRIVATE = "Every mechanism that is private at the smaller parameter is so at the larger one."
_STRICTER = "A higher confidence allows a smaller p-value."

_REFUTABLE = {
    "delta": Monotone(trend=Trend.DECREASING, proof=_LESS_PRIVATE),
    "audit_confidence": Monotone(trend=Trend.DECREASING, proof=_STRICTER),
}


@dataclass(frozen=True, kw_only=True)
class AuditExpectedCorrect(AuditProblem):
    """Largest expected number of correct guesses about a mu-GDP mechanism, c' guesses being expected.

    For inclusion, k = 2, independent Gaussian canaries and likelihood ratios attain it. For more alternatives
    mu is the privacy of replacing a record by another one.
    """

    name = "audit-expected-correct"
    asks = "correct"
    monotone = MappingProxyType({"mu": Monotone(trend=Trend.INCREASING, proof=_LESS_PRIVATE)})

    canaries: Annotated[int, audit_params.CANARIES]
    guesses: Annotated[int, audit_params.GUESSES]
    mu: Annotated[float, audit_params.MU]
    alternatives: Annotated[int, audit_params.ALTERNATIVES] = 2

    def check(self) -> None:
        """Refuse more guesses than canaries."""
        check_counts(self.canaries, self.guesses, 0)


@dataclass(frozen=True, kw_only=True)
class AuditCeiling(Counts):
    r"""Largest epsilon that a valid audit can refute from these counts: no audit can report more.

    It is the largest at which no private mechanism and attacker have so many correct guesses with more than
    probability 1 - confidence, or 0. In the Gaussian family private means mu-GDP, and the epsilon is that of
    mu at delta.
    """

    name = "audit-ceiling"
    asks = "epsilon"
    monotone = MappingProxyType({**_REFUTABLE, "correct": Monotone(trend=Trend.INCREASING, proof=_NESTED)})

    delta: Annotated[float, params.DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95
    family: Annotated[str, audit_params.NULL_FAMILY] = "approximate"


@dataclass(frozen=True, kw_only=True)
class AuditPlannedEpsilon(AuditProblem):
    """Largest epsilon that a valid audit can refute where as many inclusion guesses are correct as expected.

    As many as an optimal attacker on independent Gaussian canaries expects, rounded to the nearest number.
    """

    name = "audit-planned-epsilon"
    asks = "epsilon"
    monotone = MappingProxyType(_REFUTABLE)

    canaries: Annotated[int, audit_params.CANARIES]
    guesses: Annotated[int, audit_params.GUESSES]
    mu: Annotated[float, audit_params.MU]
    delta: Annotated[float, params.DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95
    family: Annotated[str, audit_params.NULL_FAMILY] = "approximate"

    def check(self) -> None:
        """Refuse more guesses than canaries."""
        check_counts(self.canaries, self.guesses, 0)


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
class AuditPower(AuditProblem):
    """Probability that an audit refutes a claim about independent Gaussian canaries of another mu.

    The attacker guesses about the canaries with the clearest scores, and the claim is refuted by Algorithm 3
    or by the bound of Steinke et al., whichever needs fewer correct guesses. In the Gaussian family Algorithm
    3 has to refute the mu of which the claim is the epsilon at delta.
    """

    name = "audit-power"
    asks = "probability"
    largest = 1.0

    canaries: Annotated[int, audit_params.CANARIES]
    guesses: Annotated[int, audit_params.GUESSES]
    mu: Annotated[float, audit_params.MU]
    claimed_epsilon: Annotated[float, params.CLAIMED_EPSILON]
    delta: Annotated[float, params.DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95
    family: Annotated[str, audit_params.NULL_FAMILY] = "approximate"

    def check(self) -> None:
        """Refuse more guesses than canaries."""
        check_counts(self.canaries, self.guesses, 0)
