"""Private steps of a run: distributions of their likelihood ratios, and closed-form bounds."""

import math
from dataclasses import dataclass

from privcore.likelihood_ratio.finite import Finite, Laplace, approximate
from privcore.likelihood_ratio.ratios import Gaussian, Ratio, Sampled
from privcore.numerics.rounding import FEW_FUNCTIONS
from privcore.training.phase import Phase
from privcore.training.samplers import Bounds

WIDENING = 1.0 + FEW_FUNCTIONS
SMALLEST_LOSS = 1e-6
"""Bound of the losses of a step if they are smaller, since their ratios would be rounded to 1."""


@dataclass(frozen=True, kw_only=True)
class PrivateStep:
    r"""A step, as its place in a composition needs it. Equal steps have equal distributions.

    The step is bounded in one of two ways: by a Gaussian mechanism, or by the largest size of its finite
    losses. The pair (P, Q) has the example in P.

    Attributes:
        dominating: Distribution that dominates every pair of neighbours; None if `square` is exact.
        attained: Ratios that pairs of neighbours attain, one for each kind of worst data set; the last one is
            used for the kinds that a step does not distinguish. Empty if nothing is known.
        square: Square of the parameter mu of a Gaussian mechanism that dominates the step, within six
            roundings; 0 if the losses are bounded otherwise.
        reach_remove: Upper bound of the finite losses in direction remove, for steps without Gaussian noise.
        reach_add: The same in direction add.
        infinite: Upper bound of the probability of an infinite loss.
        run: The step as a phase of a training run, with the adjacency; None for other steps.
    """

    dominating: Ratio | None = None
    attained: tuple[Ratio, ...] = ()
    square: float = 0.0
    reach_remove: float = 0.0
    reach_add: float = 0.0
    infinite: float = 0.0
    run: tuple[Phase, str] | None = None


def unamplified(noise: float, distance: float, run: tuple[Phase, str] | None = None) -> PrivateStep:
    """Return a Gaussian step in which every example takes part.

    Args:
        noise: Noise multiplier, > 0.
        distance: Distance of the sums of neighbours in clipping norms, 1 or 2.
        run: As in `PrivateStep`.
    """
    return PrivateStep(square=distance * distance / (noise * noise), run=run)


def amplified(
    noise: float,
    distance: float,
    dominating: Ratio,
    *attained: Ratio,
    run: tuple[Phase, str] | None = None,
) -> PrivateStep:
    """Return a step with Gaussian noise and a random batch.

    Args:
        noise: Noise multiplier, > 0.
        distance: Largest distance of the means of neighbours, in clipping norms, if the batch were public.
        dominating: Ratio that dominates every pair of neighbours.
        attained: Ratios that pairs of neighbours attain.
        run: As in `PrivateStep`.
    """
    ratio = distance / noise
    return PrivateStep(dominating=dominating, attained=attained, square=ratio * ratio, run=run)


def bounded(
    noise: float, distance: float, bounds: Bounds, run: tuple[Phase, str] | None = None
) -> PrivateStep:
    """Return a step with Gaussian noise from the ratios that bound it.

    Args:
        noise: Noise multiplier, > 0.
        distance: Largest distance of the means of neighbours, in clipping norms, if the batch were public.
        bounds: Ratios of the step; the first upper one dominates every pair of neighbours.
        run: As in `PrivateStep`.
    """
    dominating = bounds.above[0].ratio
    if isinstance(dominating, Gaussian):
        return unamplified(noise, distance, run)
    return amplified(noise, distance, dominating, *bounds.below, run=run)


def finite(ratio: Finite, attained: bool = True) -> PrivateStep:
    """Return a step with finitely many ratios."""
    losses = [loss for loss in ratio.losses if loss > -math.inf]
    if max(losses[-1], -losses[0]) < SMALLEST_LOSS:
        return finite(approximate(SMALLEST_LOSS, ratio.infinite), attained=False)
    return PrivateStep(
        dominating=ratio,
        attained=(ratio,) if attained else (),
        reach_remove=max(0.0, losses[-1]) * WIDENING,
        reach_add=max(0.0, -losses[0]) * WIDENING,
        infinite=ratio.infinite,
    )


def black_box(epsilon: float, delta: float) -> PrivateStep:
    """Return an (epsilon, delta)-private step about which nothing else is known."""
    return finite(approximate(epsilon, delta), attained=False)


def laplace(scale: float, probability: float) -> PrivateStep:
    """Return a step with Laplace noise that includes the example with a probability."""
    ratio: Ratio = Laplace(scale)
    loss = 1.0 / scale
    remove = add = loss
    if probability < 1.0:
        ratio = Sampled(ratio, probability)
        remove = math.log1p(probability * math.expm1(loss)) if loss < 700.0 else loss
        missing = -probability * math.expm1(-loss)
        inside = (1.0 - probability) + probability * math.exp(-loss)  # without cancellation if it is small
        add = -math.log1p(-missing) if missing < 0.5 else -math.log(inside)
    return PrivateStep(
        dominating=ratio, attained=(ratio,), reach_remove=remove * WIDENING, reach_add=add * WIDENING
    )
