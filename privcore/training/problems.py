"""Questions about training runs: about one sampler, with the fields of its phase, or about several phases."""

from typing import Annotated, cast, get_type_hints

from privcore.problem import (
    CurveQuantity,
    DeltaAtEpsilon,
    EpsilonAtDelta,
    Problem,
    asked,
    falls,
    grows,
    proved,
)
from privcore.stored_names import SAMPLERS
from privcore.training import params as training_params
from privcore.training.notation import PHASES, PHASES_TEXT, phases
from privcore.training.phase import RELATIONS, Phase, unamplified
from privcore.training.samplers import Bounds, composed


class TrainingProblem(Problem):
    """Base of the questions about a training run; the neighbouring relation has no default."""

    topic = "training"

    adjacency: Annotated[str, training_params.ADJACENCY]

    def run(self) -> tuple[Phase, ...]:
        """Return the phases of the run."""
        raise NotImplementedError

    def reason(self) -> str | None:
        """Return the reason why no theorem covers the run in this relation, or None."""
        relation = RELATIONS[self.adjacency]
        return next((why for phase in self.run() if (why := phase.reason(relation))), None)

    def bounds(self, scale: float) -> Bounds:
        """Return the ratios of the run; the size of the delta in question affects only the tightness."""
        relation = RELATIONS[self.adjacency]
        return composed([phase.bounds(relation, scale) for phase in self.run()])

    def unamplified(self) -> float:
        """Return the distance mu of the Gaussian mechanism that reveals the steps of the example."""
        return unamplified(self.run(), RELATIONS[self.adjacency])


class OnePhase(TrainingProblem):
    """Base of the questions about a run of one phase, whose fields are those of the problem."""

    phase = Phase
    """Kind of the phase."""

    def run(self) -> tuple[Phase, ...]:
        fields = {name: value for name, value in self.as_fields().items() if name in self.phase.parameters}
        return (self.phase.from_fields(fields),)


def of_phase(phase: type[Phase]) -> tuple[type[OnePhase], ...]:
    """Return the problems about runs of one phase of this kind, with an owner of one example."""
    hints = get_type_hints(phase, include_extras=True)
    first = ("sigma", "steps", "epochs")
    names = [*first, *(name for name in phase.parameters if name not in (*first, "group"))]
    body = {name: default for name, default in phase.defaults().items() if name in names} | {
        "__annotations__": {name: hints[name] for name in names},
        "__doc__": phase.__doc__,
        "__module__": __name__,
        "constraints": phase.constraints,
        "monotone": phase.monotone,
        "phase": phase,
    }
    kind = cast(type[OnePhase], type(phase.__name__, (OnePhase, TrainingProblem), body))
    return asked(phase.name, kind, phase.about)


ONE_PHASE = {word: of_phase(kind) for word, kind in PHASES.items() if not SAMPLERS[word].family}
"""Problems about runs of one phase, by its sampler."""
globals().update({kind.__name__: kind for kinds in ONE_PHASE.values() for kind in kinds})  # for the registry


class InPhases(TrainingProblem):
    """Base of the questions about a run of several phases, each with its own sampling and noise."""

    phases: Annotated[str, PHASES_TEXT]

    def run(self) -> tuple[Phase, ...]:
        return phases(self.phases)


class AtFalsePositiveRate(CurveQuantity):
    """The largest true positive rate at a false positive rate.

    If the adjacency has two directions, the test may try to show the presence or the absence of the example.
    """

    asks = "true_positive_rate"
    short = "tpr"
    given = "false_positive_rate"
    says = "Largest true positive rate, at a false positive rate, of a membership test on"
    largest = 1.0
    monotone = proved(
        false_positive_rate=grows(
            "A test with a smaller false positive rate is also allowed at a larger one."
        )
    )

    false_positive_rate: Annotated[float, training_params.FALSE_POSITIVE_RATE]


class AtTruePositiveRate(CurveQuantity):
    """The smallest false positive rate at a true positive rate.

    If the adjacency has two directions, the test may try to show the presence or the absence of the example.
    """

    asks = "false_positive_rate"
    short = "fpr"
    given = "true_positive_rate"
    says = "Smallest false positive rate, at a true positive rate, of a membership test on"
    largest = 1.0
    monotone = proved(
        true_positive_rate=grows("A test with a larger true positive rate also has a smaller one.")
    )

    true_positive_rate: Annotated[float, training_params.TRUE_POSITIVE_RATE]


class Advantage(CurveQuantity):
    """The largest difference of both rates.

    It is the total variation distance, which is the same in both directions of the adjacency.
    """

    asks = short = "advantage"
    says = "Largest difference of true and false positive rate of a membership test on"
    largest = 1.0


class AtPrior(CurveQuantity):
    """The largest accuracy at a prior probability.

    The guess uses the prior and all outputs. The accuracy is the same in both directions of the adjacency.
    """

    asks = short = "accuracy"
    given = "member_probability"
    says = "Largest accuracy, at a prior probability, of a guess whether the example was in"
    largest = 1.0

    member_probability: Annotated[float, training_params.MEMBER_PROBABILITY]


class Mu(CurveQuantity):
    """The smallest mu whose Gaussian trade-off curve is above that of the run.

    The curves are compared at false positive rates from the smallest rate to 1 minus this rate. Over all
    rates, mu would be that of the run without sampling.
    """

    asks = short = "mu"
    given = "smallest_false_positive_rate"
    says = "Smallest mu whose Gaussian trade-off curve is, from a smallest rate on, above that of"
    monotone = proved(
        smallest_false_positive_rate=falls("A larger smallest rate leaves fewer rates to compare.")
    )

    smallest_false_positive_rate: Annotated[float, training_params.SMALLEST_FALSE_POSITIVE_RATE]


RUN = RunEpsilon, RunDelta = asked(
    "run",
    InPhases,
    "of a run of several phases, each with its own sampling, noise and steps.",
    (EpsilonAtDelta, DeltaAtEpsilon),
)
RUN_CURVE = RunTpr, RunFpr, RunAdvantage, RunAccuracy, RunMu = asked(
    "run",
    InPhases,
    "a run of several phases.",
    (AtFalsePositiveRate, AtTruePositiveRate, Advantage, AtPrior, Mu),
)
