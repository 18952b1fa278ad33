"""Ratios that bound one step with Gaussian noise, by the sampler of its batch and the neighbouring relation.

The distance of a step is the largest change of its sum, in clipping norms, if the batch were public.
"""

from privcore.likelihood_ratio.batches import (
    Aligned,
    Copies,
    Opposed,
    Repeated,
    Replaced,
    SignedSample,
    Zeroed,
)
from privcore.likelihood_ratio.ratios import Blend, Gaussian, Ratio, sampled
from privcore.training.bounds import Above, Bounds
from privcore.training.counts import TINY, truncation


def poisson(relation: str, s: float, rate: float, group: int = 1) -> Bounds:
    """Return the bounds of a step whose batch includes each example independently with a probability.

    Args:
        relation: `add-remove`, `zero-out` or `replace-one`, which may bring the opposite gradient.
        s: Inverse noise multiplier, > 0.
        rate: Sampling probability, in (0, 1].
        group: Number of examples that are added or removed together; 1 for replace-one.

    Raises:
        ValueError: Several examples are to be replaced.

    Source:
        arXiv:2106.08567, Theorem 11; for replace-one and groups, docs/training-runs.md.
    """
    if relation == "replace-one" and group > 1:
        raise ValueError("Expected one example for replace-one.")
    if rate == 1.0:
        return Bounds.exact(Gaussian((2.0 if relation == "replace-one" else float(group)) * s))
    if group > 1:
        return Bounds.exact(Copies(group, rate, s))
    return Bounds.exact(_one(relation, s, rate))


def _one(relation: str, s: float, rate: float) -> Ratio:
    """Return the ratio of a Poisson sample for one example."""
    return SignedSample(rate, s) if relation == "replace-one" else sampled(Gaussian(s), rate)


def fixed_size(relation: str, s: float, rate: float) -> Bounds:
    """Return the bounds of a step whose batch is a uniform subset of a fixed size.

    For zero-out, the lower ends are those of two data sets: all other gradients opposed, or all equal.

    Args:
        relation: `add-remove`, `zero-out` or `replace-one`.
        s: Inverse noise multiplier, > 0.
        rate: Batch size over number of examples, in (0, 1].

    Source:
        docs/training-runs.md.
    """
    if rate == 1.0:
        return Bounds.exact(Gaussian((1.0 if relation == "zero-out" else 2.0) * s))
    return Bounds(above=(Above(_fixed_above(relation, s, rate)),), below=_fixed_below(relation, s, rate))


def _fixed_above(relation: str, s: float, rate: float) -> Ratio:
    if relation == "add-remove":
        return sampled(Gaussian(2.0 * s), rate)
    return Replaced(rate, s) if relation == "replace-one" else Zeroed(rate, s)


def _fixed_below(relation: str, s: float, rate: float) -> tuple[Ratio, ...]:
    if relation == "zero-out":
        return Opposed(rate, s), Aligned(rate, s)
    return (sampled(Gaussian(2.0 * s), rate),)


def with_replacement(relation: str, s: float, examples: int, draws: int) -> Bounds:
    """Return the bounds of a step whose batch consists of independent uniform draws.

    An example that is replaced may get the gradient 0, so its dominating ratio holds for zero-out.

    Args:
        relation: `add-remove`, `zero-out` or `replace-one`.
        s: Inverse noise multiplier, > 0.
        examples: Number of examples, at least 1; for add-remove, including the removed example.
        draws: Number of draws, at least 1.

    Source:
        docs/training-runs.md.
    """
    rate = 1.0 / examples
    far = Copies(draws, rate, 2.0 * s)
    if relation == "add-remove":
        return Bounds.exact(far)
    near = far if relation == "replace-one" else Copies(draws, rate, s)
    return Bounds(above=(Above(Repeated(draws, rate, s)),), below=(near,))


def truncated(relation: str, s: float, rate: float, examples: int, largest: int) -> Bounds:
    """Return the bounds of a step whose batch is a Poisson sample, or a uniform part if it is too large.

    If the other examples do not fill the batch, the step is a Poisson sample; otherwise it is a subset of
    fixed size, which contains the example with a rate q'. The first upper ratio reveals which case holds. The
    second one is that of steps that are never cut, unless cuts are negligible. The lower ratio is a Poisson
    sample at the marginal rate, which holds if all other gradients are 0.

    Args:
        relation: `add-remove`, `zero-out` or `replace-one`.
        s: Inverse noise multiplier, > 0.
        rate: Sampling probability before the cut, in (0, 1].
        examples: Number of examples, at least 1.
        largest: Largest batch size, at least 1.

    Source:
        arXiv:2411.04205, Theorem 3.3; docs/training-runs.md.
    """
    if largest >= examples:
        return poisson(relation, s, rate)
    cut = truncation(examples, rate, largest)
    if rate == 1.0:  # every batch is full: batches of fixed size
        below = _fixed_below(relation, s, cut.mean)
        return Bounds(above=(Above(_fixed_above(relation, s, cut.rate)),), below=below)
    sample = _one(relation, s, rate)
    full = max(cut.full, TINY)  # also bounds a probability that underflows
    above = [Above(Blend((cut.room, full), (sample, _fixed_above(relation, s, cut.rate))))]
    if full > TINY:
        above.append(Above(sample, moved=max(cut.cut, TINY)))
    return Bounds(above=tuple(above), below=(_one(relation, s, cut.mean),))
