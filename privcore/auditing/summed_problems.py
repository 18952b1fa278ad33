"""What is asked before an audit of DP-SGD whose attacker sees every step."""

from dataclasses import dataclass
from typing import Annotated

from privcore import params
from privcore.auditing import params as audit_params
from privcore.auditing.problems import AuditProblem, check_counts


@dataclass(frozen=True, kw_only=True)
class AuditDpsgdCorrect(AuditProblem):
    """Expected number of correct guesses about canaries of DP-SGD by scores that are summed over its steps.

    Every canary that is in has a coordinate of its own, to which a step adds its clipped gradient, of norm 1,
    with the sampling probability, and noise of deviation sigma. The c'/2 highest sums are guessed to be in,
    and the c'/2 lowest ones out, by thresholds beyond which that many are expected.
    """

    name = "audit-dpsgd-correct"
    asks = "correct"

    canaries: Annotated[int, audit_params.CANARIES]
    guesses: Annotated[int, audit_params.GUESSES]
    sigma: Annotated[float, params.SIGMA]
    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    steps: Annotated[int, params.STEPS]

    def check(self) -> None:
        """Refuse more guesses than canaries."""
        check_counts(self.canaries, self.guesses, 0)
