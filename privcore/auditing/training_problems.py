"""What the audit of a training in one run tells about its privacy."""

from dataclasses import dataclass
from typing import Annotated

from privcore import params
from privcore.auditing import params as audit_params
from privcore.auditing.problems import AuditProblem, check_counts


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

    sigma: Annotated[float, params.SIGMA]
    steps: Annotated[int, params.STEPS]
    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    canaries: Annotated[int, audit_params.CANARIES]
    guesses: Annotated[int, audit_params.GUESSES]
    delta: Annotated[float, params.DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95
    bug: Annotated[str, audit_params.BUG] = "none"
    run: Annotated[int, audit_params.RUN] = 0

    def check(self) -> None:
        """Refuse more guesses than canaries."""
        check_counts(self.canaries, self.guesses, 0)
