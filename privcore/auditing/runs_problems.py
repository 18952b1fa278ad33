"""What the error rates of an attack over many runs tell about the privacy of a mechanism."""

from dataclasses import dataclass
from typing import Annotated

from privcore import params
from privcore.auditing import params as audit_params
from privcore.auditing.problems import AuditProblem
from privcore.errors import DomainError


@dataclass(frozen=True, kw_only=True)
class AuditRunsEpsilon(AuditProblem):
    """Epsilon at this delta that an attack refutes over many runs: the truth is larger, but for an error.

    Some runs have one canary in their data and the others do not; the attack says of each whether it is in.
    Runs are independent, and their numbers, the canary and the attack with its threshold are fixed before.
    The error has a probability of at most 1 - confidence over all runs, whatever the mechanism is.
    """

    name = "audit-runs-epsilon"
    asks = "epsilon"

    runs_with: Annotated[int, audit_params.RUNS_WITH]
    true_positives: Annotated[int, audit_params.TRUE_POSITIVES]
    runs_without: Annotated[int, audit_params.RUNS_WITHOUT]
    false_positives: Annotated[int, audit_params.FALSE_POSITIVES]
    delta: Annotated[float, params.DELTA]
    audit_confidence: Annotated[float, audit_params.AUDIT_CONFIDENCE] = 0.95

    def check(self) -> None:
        """Refuse more positive runs than runs."""
        for positives, runs in (("true_positives", "runs_with"), ("false_positives", "runs_without")):
            found, most = getattr(self, positives), getattr(self, runs)
            if found > most:
                raise DomainError(f"Expected {positives} <= {runs}, got {positives}={found}, {runs}={most}.")
