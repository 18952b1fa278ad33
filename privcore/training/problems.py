"""Questions about the samplers of training code, and about runs of several phases."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from privcore import params
from privcore.allocation.problems import CONVEX, MORE_NOISE, PROFILE
from privcore.constraint import AtMost
from privcore.problem import Problem, falls, grows, proved
from privcore.training import params as training_params
from privcore.training.notation import PHASES_TEXT, phase_named, phases
from privcore.training.phase import Phase

_AT_DELTA = proved(delta=falls(PROFILE))
_AT_EPSILON = proved(epsilon=falls(PROFILE))
_EPOCHS = proved(
    sigma=falls(MORE_NOISE),
    epochs=grows("Leaving out the outputs of the last epoch is post-processing."),
)
_STEPS = proved(steps=grows("Leaving out the outputs of a step is post-processing."), **_EPOCHS)
_ASKED = ("delta", "epsilon", "adjacency")


@dataclass(frozen=True, kw_only=True)
class TrainingProblem(Problem):
    """Base of the questions about a training run; the neighbouring relation has no default."""

    topic = "training"

    adjacency: Annotated[str, training_params.ADJACENCY]

    def run(self) -> tuple[Phase, ...]:
        """Return the phases of the run."""
        fields = {name: value for name, value in self.as_fields().items() if name not in _ASKED}
        return (phase_named(self.name.rpartition("-")[0], fields),)


@dataclass(frozen=True, kw_only=True)
class EpsilonOfRun(TrainingProblem):
    """Base of the questions about the smallest epsilon at a delta."""

    asks = "epsilon"
    exp_convex = MappingProxyType({"delta": CONVEX})

    delta: Annotated[float, params.DELTA]


@dataclass(frozen=True, kw_only=True)
class DeltaOfRun(TrainingProblem):
    """Base of the questions about the delta at an epsilon."""

    asks = "delta"
    largest = 1.0

    epsilon: Annotated[float, params.EPSILON]


@dataclass(frozen=True, kw_only=True)
class Noisy(TrainingProblem):
    """Base of the questions about steps with the same Gaussian noise, in one or more epochs."""

    sigma: Annotated[float, params.SIGMA]
    steps: Annotated[int, params.STEPS]
    epochs: Annotated[int, params.EPOCHS] = 1


@dataclass(frozen=True, kw_only=True)
class InBins(Noisy):
    """Base of the questions about examples that are thrown into the steps of an epoch, as balls into bins."""

    constraints = (AtMost("participations", "steps"),)

    redraw: Annotated[str, training_params.REDRAW]
    participations: Annotated[int, params.PARTICIPATIONS] = 1


@dataclass(frozen=True, kw_only=True)
class BallsInBinsEpsilon(InBins, EpsilonOfRun):
    """Smallest epsilon if each example is in a random bin (step), kept for all epochs or redrawn in each."""

    name = "balls-in-bins-epsilon"
    monotone = proved(**_EPOCHS, **_AT_DELTA)


@dataclass(frozen=True, kw_only=True)
class BallsInBinsDelta(InBins, DeltaOfRun):
    """Delta if each example is in one random bin (step), kept for all epochs or redrawn in each."""

    name = "balls-in-bins-delta"
    monotone = proved(**_EPOCHS, **_AT_EPSILON)


@dataclass(frozen=True, kw_only=True)
class FixedBatches(Noisy):
    """Base of the questions about batches of a fixed number of different examples, drawn for each step."""

    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]


@dataclass(frozen=True, kw_only=True)
class FixedSizeEpsilon(FixedBatches, EpsilonOfRun):
    """Smallest epsilon if every step draws a batch of fixed size without replacement."""

    name = "fixed-size-epsilon"
    monotone = proved(**_STEPS, **_AT_DELTA)


@dataclass(frozen=True, kw_only=True)
class FixedSizeDelta(FixedBatches, DeltaOfRun):
    """Delta if every step draws a batch of fixed size without replacement."""

    name = "fixed-size-delta"
    monotone = proved(**_STEPS, **_AT_EPSILON)


@dataclass(frozen=True, kw_only=True)
class ReplacedBatches(Noisy):
    """Base of the questions about batches whose examples are drawn one by one, with replacement."""

    constraints = (AtMost("batch_size", "examples"),)

    examples: Annotated[int, training_params.SAMPLED_EXAMPLES]
    batch_size: Annotated[int, training_params.BATCH_SIZE]


@dataclass(frozen=True, kw_only=True)
class WithReplacementEpsilon(ReplacedBatches, EpsilonOfRun):
    """Smallest epsilon if every step draws a batch of fixed size with replacement."""

    name = "with-replacement-epsilon"
    monotone = proved(**_STEPS, **_AT_DELTA)


@dataclass(frozen=True, kw_only=True)
class WithReplacementDelta(ReplacedBatches, DeltaOfRun):
    """Delta if every step draws a batch of fixed size with replacement."""

    name = "with-replacement-delta"
    monotone = proved(**_STEPS, **_AT_EPSILON)


@dataclass(frozen=True, kw_only=True)
class CutBatches(Noisy):
    """Base of the questions about Poisson-sampled batches that are cut to a largest size."""

    constraints = (AtMost("largest_batch", "examples"),)

    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    examples: Annotated[int, training_params.SAMPLED_EXAMPLES]
    largest_batch: Annotated[int, training_params.LARGEST_BATCH]


@dataclass(frozen=True, kw_only=True)
class TruncatedPoissonEpsilon(CutBatches, EpsilonOfRun):
    """Smallest epsilon of Poisson sampling whose batches are cut to a largest size, as accelerators need."""

    name = "truncated-poisson-epsilon"
    monotone = proved(**_STEPS, **_AT_DELTA)


@dataclass(frozen=True, kw_only=True)
class TruncatedPoissonDelta(CutBatches, DeltaOfRun):
    """Delta of Poisson sampling whose batches are cut to a largest size, as accelerators need."""

    name = "truncated-poisson-delta"
    monotone = proved(**_STEPS, **_AT_EPSILON)


@dataclass(frozen=True, kw_only=True)
class InPhases(TrainingProblem):
    """Base of the questions about a run of several phases, each with its own sampling and noise."""

    phases: Annotated[str, PHASES_TEXT]

    def run(self) -> tuple[Phase, ...]:
        return phases(self.phases)


@dataclass(frozen=True, kw_only=True)
class RunEpsilon(InPhases, EpsilonOfRun):
    """Smallest epsilon of a run of several phases, each with its own sampling, noise and steps."""

    name = "run-epsilon"
    monotone = _AT_DELTA


@dataclass(frozen=True, kw_only=True)
class RunDelta(InPhases, DeltaOfRun):
    """Delta of a run of several phases, each with its own sampling, noise and steps."""

    name = "run-delta"
    monotone = _AT_EPSILON
