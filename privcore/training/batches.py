"""Phases whose steps draw their batches independently: Poisson sampling, fixed and truncated batches."""

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Annotated

from privcore import params
from privcore.constraint import AtMost
from privcore.likelihood_ratio.fixed_size.adaptive import AdaptiveSteps
from privcore.likelihood_ratio.ratios import Gaussian
from privcore.problem import grows, proved
from privcore.training import params as training_params
from privcore.training.phase import Owned, Phase
from privcore.training.samplers import Above, Bounds, fixed_size, poisson, truncated, with_replacement


class Drawn(Phase):
    """Base of the phases whose steps are independent and equal."""

    monotone = proved(**Phase.monotone, steps=grows("Leaving out the outputs of a step is post-processing."))

    @property
    def uses(self) -> int:
        return math.prod(getattr(self, name) for name in ("steps", "epochs"))

    @abstractmethod
    def step(self, relation: str) -> Bounds:
        """Return the ratios of one step; the relation is as in `bounds`."""

    def bounds(self, relation: str, scale: float) -> Bounds:
        return self.step(relation).repeated(self.uses)


class Public(Drawn, Owned):
    """Steps that all use the example."""

    name = "none"

    steps: Annotated[int, params.STEPS]
    epochs: Annotated[int, params.EPOCHS] = 1

    def step(self, relation: str) -> Bounds:
        return Bounds.exact(Gaussian(self.distance(relation) * self.s))


class PoissonPhase(Drawn, Owned):
    """Steps that include each example independently with a probability."""

    name = "poisson"

    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    steps: Annotated[int, params.STEPS]
    epochs: Annotated[int, params.EPOCHS] = 1

    def step(self, relation: str) -> Bounds:
        return poisson(relation, self.s, self.sampling_probability, self.group)


class Displacing(Drawn):
    """Base of samplers in which another example takes the place of a removed example."""

    def distance(self, relation: str) -> float:
        return 1.0 if relation == "zero-out" else 2.0


class FixedSize(Displacing):
    """Steps with a uniformly chosen batch of a fixed number of different examples."""

    name = "fixed-size"
    about = "if every step draws a batch of fixed size without replacement."

    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    steps: Annotated[int, params.STEPS]
    epochs: Annotated[int, params.EPOCHS] = 1

    def step(self, relation: str) -> Bounds:
        return fixed_size(relation, self.s, self.sampling_probability)

    def bounds(self, relation: str, scale: float) -> Bounds:
        found = super().bounds(relation, scale)
        if relation != "zero-out" or self.uses == 1 or self.sampling_probability == 1.0:
            return found
        size = 10.0 ** math.floor(math.log10(scale))  # so that neighbouring questions share distributions
        adaptive = AdaptiveSteps(self.sampling_probability, self.s, self.uses, size)
        return replace(found, above=(*found.above, Above(adaptive)))


class WithReplacement(Displacing):
    """Steps whose batch is drawn example by example, independently: an example may occur several times."""

    name = "with-replacement"
    about = "if every step draws a batch of fixed size with replacement."
    constraints = (AtMost("batch_size", "examples"),)

    examples: Annotated[int, training_params.SAMPLED_EXAMPLES]
    batch_size: Annotated[int, training_params.BATCH_SIZE]
    steps: Annotated[int, params.STEPS]
    epochs: Annotated[int, params.EPOCHS] = 1

    def distance(self, relation: str) -> float:
        return self.batch_size * super().distance(relation)

    def step(self, relation: str) -> Bounds:
        return with_replacement(relation, self.s, self.examples, self.batch_size)


class TruncatedPoisson(Displacing):
    """Steps with a Poisson sample; if it is larger than the largest batch, a uniform part of it is used."""

    name = "truncated-poisson"
    about = "of Poisson sampling whose batches are cut to a largest size, as accelerators need."
    constraints = (AtMost("largest_batch", "examples"),)

    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    examples: Annotated[int, training_params.SAMPLED_EXAMPLES]
    largest_batch: Annotated[int, training_params.LARGEST_BATCH]
    steps: Annotated[int, params.STEPS]
    epochs: Annotated[int, params.EPOCHS] = 1

    def step(self, relation: str) -> Bounds:
        return truncated(relation, self.s, self.sampling_probability, self.examples, self.largest_batch)
