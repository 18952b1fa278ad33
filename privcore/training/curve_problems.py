"""Questions about tests on a run of several phases: points of the trade-off curve, its mu, and audits."""

from dataclasses import dataclass
from typing import Annotated

from privcore.auditing.problems import MORE_CORRECT, Counts
from privcore.problem import falls, grows, proved
from privcore.training import params as training_params
from privcore.training.claims import CLAIM_TEXT, Mechanism, claim
from privcore.training.phase import Phase
from privcore.training.problems import InPhases


@dataclass(frozen=True, kw_only=True)
class RunTruePositiveRate(InPhases):
    """Largest true positive rate of a membership test on a run of several phases, at a false positive rate.

    If the adjacency has two directions, the test may try to show the presence or the absence of the example.
    """

    name = "run-tpr"
    asks = "true_positive_rate"
    largest = 1.0
    monotone = proved(
        false_positive_rate=grows(
            "A test with a smaller false positive rate is also allowed at a larger one."
        )
    )

    false_positive_rate: Annotated[float, training_params.FALSE_POSITIVE_RATE]


@dataclass(frozen=True, kw_only=True)
class RunFalsePositiveRate(InPhases):
    """Smallest false positive rate of a membership test on a run of several phases, at a true positive rate.

    If the adjacency has two directions, the test may try to show the presence or the absence of the example.
    """

    name = "run-fpr"
    asks = "false_positive_rate"
    largest = 1.0
    monotone = proved(
        true_positive_rate=grows("A test with a larger true positive rate also has a smaller one.")
    )

    true_positive_rate: Annotated[float, training_params.TRUE_POSITIVE_RATE]


@dataclass(frozen=True, kw_only=True)
class RunAdvantage(InPhases):
    """Largest difference of true and false positive rate of a membership test on a run of several phases.

    It is the total variation distance, which is the same in both directions of the adjacency.
    """

    name = "run-advantage"
    asks = "advantage"
    largest = 1.0


@dataclass(frozen=True, kw_only=True)
class RunAccuracy(InPhases):
    """Largest accuracy of a guess whether the example was in a run of several phases, at a prior probability.

    The guess uses the prior and all outputs. The accuracy is the same in both directions of the adjacency.
    """

    name = "run-accuracy"
    asks = "accuracy"
    largest = 1.0

    member_probability: Annotated[float, training_params.MEMBER_PROBABILITY]


@dataclass(frozen=True, kw_only=True)
class RunMu(InPhases):
    """Smallest mu whose Gaussian trade-off curve is above that of a run, from a smallest rate on.

    The curves are compared at false positive rates from the smallest rate to 1 minus this rate. Over all
    rates, mu would be that of the run without sampling.
    """

    name = "run-mu"
    asks = "mu"
    monotone = proved(
        smallest_false_positive_rate=falls("A larger smallest rate leaves fewer rates to compare.")
    )

    smallest_false_positive_rate: Annotated[float, training_params.SMALLEST_FALSE_POSITIVE_RATE]


@dataclass(frozen=True, kw_only=True)
class AuditClaimTail(Counts):
    """p-value of a claim: largest probability of at least this many correct guesses under it.

    The claim is a training run, another mechanism, a guarantee or a privacy profile, or their composition.

    The neighbouring relation follows from the design: add-remove or replace-one.
    """

    name = "audit-claim-tail"
    topic = "training"  # of its methods
    asks = "probability"
    largest = 1.0
    monotone = proved(correct=falls(MORE_CORRECT))

    phases: Annotated[str, CLAIM_TEXT]

    def claim(self) -> tuple[Phase | Mechanism, ...]:
        """Return the parts of the claim."""
        return claim(self.phases)
