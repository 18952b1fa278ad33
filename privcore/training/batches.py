"""Phases whose steps draw their batches independently: Poisson sampling, fixed and truncated batches."""

from dataclasses import dataclass
from typing import Annotated

from privcore import params
from privcore.likelihood_ratio.batches import (
    Aligned,
    Copies,
    Opposed,
    Repeated,
    Replaced,
    SignedSample,
    Zeroed,
)
from privcore.likelihood_ratio.blend import Blend
from privcore.likelihood_ratio.ratios import Gaussian, Ratio, sampled
from privcore.problem import AtMost
from privcore.training import params as training_params
from privcore.training.bounds import Above, Bounds
from privcore.training.counts import TINY, truncation
from privcore.training.phase import Owned, Phase, repeated


@dataclass(frozen=True, kw_only=True)
class Public(Owned):
    """Steps that all use the example."""

    name = "none"

    steps: Annotated[int, params.STEPS]
    epochs: Annotated[int, params.EPOCHS] = 1

    @property
    def uses(self) -> int:
        return self.steps * self.epochs

    def bounds(self, relation: str, scale: float) -> Bounds:
        return Bounds.exact(Gaussian(self.unamplified(relation)))


@dataclass(frozen=True, kw_only=True)
class Poisson(Owned):
    """Steps that include each example independently with a probability."""

    name = "poisson"

    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    steps: Annotated[int, params.STEPS]
    epochs: Annotated[int, params.EPOCHS] = 1

    @property
    def uses(self) -> int:
        return self.steps * self.epochs

    def bounds(self, relation: str, scale: float) -> Bounds:
        rate = self.sampling_probability
        if rate == 1.0:
            return Bounds.exact(Gaussian(self.unamplified(relation)))
        ratio = sampled(Gaussian(self.s), rate)
        if relation == "replace-one":
            ratio = SignedSample(rate, self.s)
        elif self.group > 1:
            ratio = Copies(self.group, rate, self.s)
        return Bounds.exact(repeated(ratio, self.uses))


@dataclass(frozen=True, kw_only=True)
class Displacing(Phase):
    """Base of samplers in which another example takes the place of a removed example."""

    def distance(self, relation: str) -> float:
        return 1.0 if relation == "zero-out" else 2.0


@dataclass(frozen=True, kw_only=True)
class FixedSize(Displacing):
    """Steps with a uniformly chosen batch of a fixed number of different examples.

    For zero-out, the lower ends are those of two data sets: all other gradients opposed, or all equal.
    """

    name = "fixed-size"

    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    steps: Annotated[int, params.STEPS]
    epochs: Annotated[int, params.EPOCHS] = 1

    @property
    def uses(self) -> int:
        return self.steps * self.epochs

    def bounds(self, relation: str, scale: float) -> Bounds:
        rate, s, times = self.sampling_probability, self.s, self.uses
        if rate == 1.0:
            return Bounds.exact(Gaussian(self.unamplified(relation)))
        return Bounds(
            above=(Above(repeated(fixed_above(relation, rate, s), times)),),
            below=tuple(repeated(ratio, times) for ratio in fixed_below(relation, rate, s)),
        )


def fixed_above(relation: str, rate: float, s: float) -> Ratio:
    """Return the ratio with the largest profile of a step with a batch of fixed size."""
    if relation == "add-remove":
        return sampled(Gaussian(2.0 * s), rate)
    return Replaced(rate, s) if relation == "replace-one" else Zeroed(rate, s)


def fixed_below(relation: str, rate: float, s: float) -> tuple[Ratio, ...]:
    """Return the ratios of data sets for a step with a batch of fixed size."""
    if relation == "zero-out":
        return Opposed(rate, s), Aligned(rate, s)
    return (sampled(Gaussian(2.0 * s), rate),)


@dataclass(frozen=True, kw_only=True)
class WithReplacement(Displacing):
    """Steps whose batch is drawn example by example, independently: an example may occur several times."""

    name = "with-replacement"
    constraints = (AtMost("batch_size", "examples"),)

    examples: Annotated[int, training_params.SAMPLED_EXAMPLES]
    batch_size: Annotated[int, training_params.BATCH_SIZE]
    steps: Annotated[int, params.STEPS]
    epochs: Annotated[int, params.EPOCHS] = 1

    @property
    def uses(self) -> int:
        return self.steps * self.epochs

    def distance(self, relation: str) -> float:
        return self.batch_size * super().distance(relation)

    def bounds(self, relation: str, scale: float) -> Bounds:
        b, rate, times = self.batch_size, 1.0 / self.examples, self.uses
        far = repeated(Copies(b, rate, 2.0 * self.s), times)
        if relation == "add-remove":
            return Bounds.exact(far)
        near = repeated(Copies(b, rate, self.s), times)
        return Bounds(
            above=(Above(repeated(Repeated(b, rate, self.s), times)),),
            below=(far if relation == "replace-one" else near,),
        )


@dataclass(frozen=True, kw_only=True)
class TruncatedPoisson(Displacing):
    """Steps with a Poisson sample; if it is larger than the largest batch, a uniform part of it is used."""

    name = "truncated-poisson"
    constraints = (AtMost("largest_batch", "examples"),)

    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    examples: Annotated[int, training_params.SAMPLED_EXAMPLES]
    largest_batch: Annotated[int, training_params.LARGEST_BATCH]
    steps: Annotated[int, params.STEPS]
    epochs: Annotated[int, params.EPOCHS] = 1

    @property
    def uses(self) -> int:
        return self.steps * self.epochs

    def bounds(self, relation: str, scale: float) -> Bounds:
        rate, s, times = self.sampling_probability, self.s, self.uses
        cut = truncation(self.examples, rate, self.largest_batch)
        signed = relation == "replace-one"
        sample: Ratio = SignedSample(rate, s) if signed else sampled(Gaussian(s), rate)
        if self.largest_batch == self.examples:
            return Bounds.exact(repeated(sample, times))
        mean: Ratio = SignedSample(cut.mean, s) if signed else sampled(Gaussian(s), cut.mean)
        whole = Above(repeated(sample, times), moved=min(1.0, times * max(cut.cut, TINY)))
        if rate == 1.0:  # every batch is full: batches of fixed size
            return Bounds(
                above=(Above(repeated(fixed_above(relation, cut.rate, s), times)),),
                below=tuple(repeated(ratio, times) for ratio in fixed_below(relation, cut.mean, s)),
            )
        if cut.full <= TINY:
            return Bounds(above=(whole,), below=(repeated(mean, times),))
        blend = Blend((cut.room, cut.full), (sample, fixed_above(relation, cut.rate, s)))
        return Bounds(above=(Above(repeated(blend, times)), whole), below=(repeated(mean, times),))
