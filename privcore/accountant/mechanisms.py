"""Translation of single events of dp-accounting to private steps."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from privcore.accountant.mixture import mixture
from privcore.accountant.relation import Relation
from privcore.accountant.steps import PrivateStep, black_box, bounded, finite, laplace, unamplified
from privcore.errors import DomainError
from privcore.likelihood_ratio.finite import discrete_laplace, response
from privcore.training import Phase, phase_named
from privcore.training.samplers import fixed_size, poisson, truncated, with_replacement

MOST_EXAMPLES = 10**9
"""Largest number of examples."""
SUM_OF_PROBABILITIES = 1e-9
"""Largest deviation of a sum of probabilities from 1; the probabilities are then divided by their sum."""
MOST_RATIOS = 1000
"""Largest sensitivity of discrete Laplace noise, and largest number of shifts of a mixture."""
SMALLEST_LEVEL = 1e-100
"""Smallest positive noise level; the square of its inverse is a double."""
LARGEST_LEVEL = 1e6
"""Largest finite noise level; the likelihood ratios at more noise would be rounded to 1."""
SMALLEST_RATE = 1e-12
"""Smallest positive sampling probability."""
MOST_STEPS = 10**12
"""Largest number of steps of a run."""


class RefusedEventError(Exception):
    """An event cannot be accounted for.

    Attributes:
        event: The event, which may be part of a larger one.
        reason: One sentence.
    """

    def __init__(self, event: object, reason: str) -> None:
        super().__init__(reason)
        self.event, self.reason = event, reason


@dataclass(frozen=True)
class StepSetting:
    """Assumptions of an accountant about neighbouring data sets.

    Attributes:
        relation: Neighbouring relation.
        sensitivity: Largest distance of the sums of neighbours that replace an example, in clipping norms: 1
            or 2; None if it is not known.
    """

    relation: Relation
    sensitivity: int | None


class NotPrivateError(Exception):
    """A step has no noise."""


def name_of(event: Any) -> str:
    """Return the name of the class of dp-accounting that an event belongs to."""
    for cls in type(event).__mro__:
        if cls.__module__.startswith("dp_accounting"):
            return cls.__name__ if cls.__name__ != "DpEvent" else type(event).__name__
    return type(event).__name__


def _level(event: Any, name: str, least: float = SMALLEST_LEVEL, most: float = LARGEST_LEVEL) -> float:
    """Return a noise level of an event, or another number of at least 0."""
    value = getattr(event, name)
    if not value >= 0.0:
        raise RefusedEventError(event, f"`{name}` must be at least 0, got {value}.")
    if 0.0 < value < least or most < value < math.inf:
        limits = f"0, infinite, or from {least:g} to {most:g}"
        raise RefusedEventError(event, f"`{name}` must be {limits}, got {value}.")
    return float(value)


def _probability(event: Any, name: str, least: float = 0.0) -> float:
    """Return a probability of an event."""
    value = getattr(event, name)
    if not 0.0 <= value <= 1.0:
        raise RefusedEventError(event, f"`{name}` must be in [0, 1], got {value}.")
    if 0.0 < value < least:
        raise RefusedEventError(event, f"`{name}` must be 0 or at least {least:g}, got {value}.")
    return float(value)


def integer_of(event: Any, name: str, least: int, most: int) -> int:
    """Return an integer of an event."""
    value = getattr(event, name)
    if int(value) != value or not least <= value <= most:
        raise RefusedEventError(event, f"`{name}` must be an integer from {least} to {most}, got {value}.")
    return int(value)


def _needs(event: Any, found: Relation, *allowed: Relation) -> None:
    """Refuse an event that has no meaning for the neighbouring relation."""
    if found not in allowed:
        names = " or ".join(f"`{each.value}`" for each in allowed)
        reason = f"neighboring_relation must be {names} for `{name_of(event)}`, got `{found.value}`."
        raise RefusedEventError(event, reason)


def _distance(event: Any, setting: StepSetting) -> int:
    """Return the distance of the sums of neighbours, in clipping norms, without sampling."""
    if setting.relation is not Relation.REPLACE_ONE:
        return 1
    if setting.sensitivity is None:
        raise RefusedEventError(
            event,
            "Under `REPLACE_ONE`, the noise multiplier of `GaussianDpEvent` may refer to a distance of 1 or "
            "of 2 clipping norms: pass `sensitivity=1` or `sensitivity=2` to the accountant.",
        )
    return setting.sensitivity


def _opposite(event: Any, setting: StepSetting) -> None:
    """Refuse a sampled event if an example cannot be replaced by the opposite one."""
    if setting.relation is Relation.REPLACE_ONE and setting.sensitivity == 1:
        raise RefusedEventError(
            event,
            f"`{name_of(event)}` under `REPLACE_ONE` replaces a gradient of norm 1 by any other, which is a "
            "distance of 2 clipping norms: pass `sensitivity=2` to the accountant.",
        )


def _silenced(noise: float) -> bool:
    """Return whether the noise is infinite.

    Raises:
        NotPrivateError: There is no noise.
    """
    if noise == 0.0:
        raise NotPrivateError
    return noise == math.inf


def _gaussian(event: Any, setting: StepSetting) -> PrivateStep | None:
    noise, distance = _level(event, "noise_multiplier"), _distance(event, setting)
    if _silenced(noise):
        return None
    run = _run(setting, "none", sigma=noise) if distance == _most(setting) else None
    return unamplified(noise, distance, run)


def _laplace(event: Any, setting: StepSetting) -> PrivateStep | None:
    _needs(event, setting.relation, *_ONE_SIDED)
    noise = _level(event, "noise_multiplier")
    return None if _silenced(noise) else laplace(noise, 1.0)


def _discrete_laplace(event: Any, setting: StepSetting) -> PrivateStep | None:
    _needs(event, setting.relation, *_ONE_SIDED)
    noise, sensitivity = (
        _level(event, "noise_parameter", 1e-6, 1e8),
        integer_of(event, "sensitivity", 0, MOST_RATIOS),
    )
    if sensitivity == 0:
        return None
    if _silenced(noise):  # an infinite parameter of this event means no noise
        raise NotPrivateError
    return finite(discrete_laplace(noise, sensitivity))


def _response(event: Any, setting: StepSetting) -> PrivateStep | None:
    _needs(event, setting.relation, Relation.REPLACE_ONE, Relation.REPLACE_SPECIAL)
    noise, buckets = _probability(event, "noise_parameter"), integer_of(event, "num_buckets", 1, MOST_STEPS)
    if buckets == 1 or noise == 1.0 or _silenced(noise):
        return None
    return finite(response(noise, buckets, special=setting.relation is Relation.REPLACE_SPECIAL))


def _approximate(event: Any, setting: StepSetting) -> PrivateStep:
    return black_box(_level(event, "epsilon", 0.0, math.inf), _probability(event, "delta"))


def _pure(event: Any, setting: StepSetting) -> PrivateStep:
    return black_box(_level(event, "epsilon", 0.0, math.inf), 0.0)


def _poisson(event: Any, setting: StepSetting) -> PrivateStep | None:
    rate, inner = _probability(event, "sampling_probability", SMALLEST_RATE), event.event
    name = name_of(inner)
    if name not in ("GaussianDpEvent", "LaplaceDpEvent"):
        raise RefusedEventError(
            event,
            f"`PoissonSampledDpEvent` must contain `GaussianDpEvent` or `LaplaceDpEvent`, not `{name}`.",
        )
    if name == "LaplaceDpEvent":
        _needs(event, setting.relation, *_ONE_SIDED)
    noise = _level(inner, "noise_multiplier")
    _opposite(event, setting)
    if rate == 0.0 or _silenced(noise):
        return None
    if name == "LaplaceDpEvent":
        return laplace(noise, rate)
    return _sampled(noise, rate, setting)


def _sampled(noise: float, rate: float, setting: StepSetting) -> PrivateStep:
    """Return a Gaussian step with Poisson sampling."""
    bounds = poisson(setting.relation.short, 1.0 / noise, rate)
    run = _run(setting, "poisson", sigma=noise, sampling_probability=rate)
    return bounded(noise, _most(setting), bounds, run)


def _most(setting: StepSetting) -> float:
    """Return the largest distance of the sums of neighbours that use the example, in clipping norms."""
    return 2.0 if setting.relation is Relation.REPLACE_ONE else 1.0


def _run(setting: StepSetting, sampling: str, **fields: float) -> tuple[Phase, str] | None:
    """Return one step as a phase of a training run, with the adjacency; None outside of its domain."""
    try:
        return phase_named(sampling, {**fields, "steps": 1}), setting.relation.short
    except DomainError:
        return None


def _gaussian_noise(event: Any, setting: StepSetting) -> float:
    """Return the noise multiplier of the Gaussian event in an event with a batch of fixed size."""
    if name_of(event.event) != "GaussianDpEvent":
        raise RefusedEventError(
            event, f"`{name_of(event)}` must contain `GaussianDpEvent`, not `{name_of(event.event)}`."
        )
    _opposite(event, setting)
    return _level(event.event, "noise_multiplier")


def _displaced(setting: StepSetting) -> float:
    """Return the distance of the sums of neighbours if another example takes the place of a removed one."""
    return 1.0 if setting.relation is Relation.REPLACE_SPECIAL else 2.0


def _without_replacement(event: Any, setting: StepSetting) -> PrivateStep | None:
    noise = _gaussian_noise(event, setting)
    examples = integer_of(event, "source_dataset_size", 1, MOST_EXAMPLES)
    batch = integer_of(event, "sample_size", 0, examples)
    if batch == examples and setting.relation is Relation.ADD_OR_REMOVE_ONE:
        raise RefusedEventError(
            event,
            "A batch of all examples cannot keep its size if an example is removed; use `GaussianDpEvent`.",
        )
    if batch == 0 or _silenced(noise):
        return None
    bounds = fixed_size(setting.relation.short, 1.0 / noise, batch / examples)
    run = _run(setting, "fixed-size", sigma=noise, sampling_probability=batch / examples)
    return bounded(noise, _displaced(setting), bounds, run)


def _with_replacement(event: Any, setting: StepSetting) -> PrivateStep | None:
    noise = _gaussian_noise(event, setting)
    examples = integer_of(event, "source_dataset_size", 2, MOST_EXAMPLES)
    batch = integer_of(event, "sample_size", 0, MOST_EXAMPLES)
    if batch == 0 or _silenced(noise):
        return None
    bounds = with_replacement(setting.relation.short, 1.0 / noise, examples, batch)
    run = _run(setting, "with-replacement", sigma=noise, examples=examples, batch_size=batch)
    return bounded(noise, batch * _displaced(setting), bounds, run)


def _truncated(event: Any, setting: StepSetting) -> PrivateStep | None:
    _opposite(event, setting)
    noise, rate = (
        _level(event, "noise_multiplier"),
        _probability(event, "sampling_probability", SMALLEST_RATE),
    )
    examples = integer_of(event, "dataset_size", 0, MOST_EXAMPLES)
    largest = integer_of(event, "truncated_batch_size", 0, MOST_STEPS)
    if rate == 0.0 or examples == 0 or largest == 0 or _silenced(noise):
        return None
    if largest >= examples:
        return _sampled(noise, rate, setting)
    bounds = truncated(setting.relation.short, 1.0 / noise, rate, examples, largest)
    fields = {"sampling_probability": rate, "examples": examples, "largest_batch": largest}
    return bounded(
        noise, _displaced(setting), bounds, _run(setting, "truncated-poisson", sigma=noise, **fields)
    )


def _mixture(event: Any, setting: StepSetting) -> PrivateStep | None:
    _needs(event, setting.relation, *_ONE_SIDED)
    noise = _level(event, "standard_deviation")
    means, weights = ([float(x) for x in v] for v in (event.sensitivities, event.sampling_probs))
    if len(means) != len(weights) or not means or len(means) > MOST_RATIOS:
        raise RefusedEventError(event, f"Expected 1 to {MOST_RATIOS} sensitivities, with a probability each.")
    if not min(means) >= 0.0 or max(means) == math.inf:
        raise RefusedEventError(event, "Sensitivities must be at least 0 and finite.")
    if not min(weights) >= 0.0 or not abs(math.fsum(weights) - 1.0) <= SUM_OF_PROBABILITIES:
        raise RefusedEventError(event, "Probabilities of sensitivities must be at least 0 and add up to 1.")
    if not any(mean * weight > 0.0 for mean, weight in zip(means, weights, strict=True)):
        return None
    return None if _silenced(noise) else mixture(noise, means, weights)


_ONE_SIDED = (Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_SPECIAL)

MECHANISMS: dict[str, Callable[[Any, StepSetting], PrivateStep | None]] = {
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "EpsilonDeltaDpEvent": _approximate,
    "ExponentialMechanismDpEvent": _pure,
    "GaussianDpEvent": _gaussian,
    "LaplaceDpEvent": _laplace,
    "PermuteAndFlipDpEvent": _pure,
    "MixtureOfGaussiansDpEvent": _mixture,
    "PoissonSampledDpEvent": _poisson,
    "RandomizedResponseDpEvent": _response,
    "SampledWithReplacementDpEvent": _with_replacement,
    "SampledWithoutReplacementDpEvent": _without_replacement,
    "TruncatedSubsampledGaussianDpEvent": _truncated,
}
