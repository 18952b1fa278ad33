"""A training run as practitioners describe it: n examples in batches of b, and the safe rounding of n / b."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from privcore.errors import DomainError
from privcore.params import EPOCHS, EXAMPLES, PARTICIPATIONS, STEPS
from privcore.problem import Problem
from privcore.stored_names import SAMPLERS

AVERAGE_BATCH = replace(
    EXAMPLES,
    name="batch_size",
    symbol="b",
    meaning="Average number of examples in a step, at one participation",
)
ANY_STEPS = tuple(word for word, sampler in SAMPLERS.items() if sampler.steps == "any")
"""Samplers whose steps may be given together with a batch size, which is a field or a size of batches."""
MORE_STEPS = ("poisson", *ANY_STEPS)
"""Samplers whose steps draw their batches independently: at one rate, epsilon grows with the steps."""
FEWER_STEPS = tuple(word for word, sampler in SAMPLERS.items() if sampler.steps == "fewer")
"""Samplers that use an example a fixed number of times in an epoch: its upper bounds fall with the steps."""
SIZES = {parameter.name: parameter for parameter in (EXAMPLES, AVERAGE_BATCH)}
"""Numbers that determine the steps of an epoch, and the sampling probability."""
SIZED_STEPS = 3
"""Fewest batches for which a theorem about shuffling uses their size."""


@dataclass(frozen=True, kw_only=True)
class Rounding:
    """One way to turn examples and batch size into steps.

    Attributes:
        sampling: The sampler.
        way: `down`, `up`, or `exact` if the batch size divides the examples.
        steps: Steps of an epoch.
        total_steps: Steps of all epochs.
        mean_batch: Examples that a step uses on average.
        sampling_probability: Sampling probability, never below the true one, if steps draw independently.
        safe: Whether an upper bound for this rounding holds for both.
    """

    sampling: str
    way: str
    steps: int
    total_steps: int
    mean_batch: float
    sampling_probability: float | None
    safe: bool


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """A training run: n examples, batches of b, E epochs, k participations of an example in each.

    The steps of an epoch are n / b, rounded. With k participations a step uses k b examples on average.
    """

    examples: int
    batch_size: int
    epochs: int = 1
    participations: int = 1

    @classmethod
    def checked(cls, given: Mapping[str, object], any_steps: bool = False) -> "TrainingRun":
        """Return the run with these numbers, named as the fields of this class.

        Args:
            given: The numbers.
            any_steps: Whether the steps are not those of the run, so that there may be any number of them.

        Raises:
            DomainError: A number is outside its domain, or examples, batch size and participations contradict
                one another.
        """
        domains = (EXAMPLES, AVERAGE_BATCH, EPOCHS, PARTICIPATIONS)
        run = cls(**{p.name: int(p.check(given[p.name])) for p in domains if p.name in given})
        n, b, k = run.examples, run.batch_size, run.participations
        if b > n:
            raise DomainError(f"Expected batch_size <= examples, got batch_size={b}, examples={n}.")
        if k * b > n:
            raise DomainError(
                "Expected participations <= examples / batch_size, the steps of an epoch, "
                f"got participations={k}, batch_size={b}, examples={n}."
            )
        if not any_steps:
            STEPS.check(-(-n // b))
        return run

    @property
    def rate(self) -> float:
        """Probability with which Poisson sampling includes an example in a step: k b / n, rounded up."""
        return _above(Fraction(self.participations * self.batch_size, self.examples))

    def rate_over(self, steps: int) -> float:
        """Probability of an example in a step if it is used in k of some steps on average, rounded up."""
        return _above(Fraction(self.participations, steps))

    @property
    def left_out(self) -> int:
        """Number of examples of an epoch that do not fill a batch."""
        return self.examples % self.batch_size

    @property
    def quotient(self) -> str:
        """Text of n / b, cut after three decimals; without decimals if it is whole."""
        n, b = self.examples, self.batch_size
        return f"{n // b}" if n % b == 0 else f"{n // b}.{1000 * (n % b) // b:03d}"

    def roundings(self, sampling: str) -> tuple[Rounding, ...]:
        """Return both roundings of the steps, down and up; or the only one if b divides n.

        For allocation, rounding down is safe: it also bounds the run with one more step, since epsilon falls
        in the number of steps. For Poisson sampling at one rate, and for steps that all use an example,
        rounding up is safe, since epsilon grows.

        Args:
            sampling: The sampler.
        """
        down, up = self.examples // self.batch_size, -(-self.examples // self.batch_size)
        ways = {"exact": down} if down == up else {"down": down, "up": up}
        safe = "down" if sampling in FEWER_STEPS else "up"
        rate, used = self.rate if sampling in MORE_STEPS else None, self.participations * self.batch_size
        return tuple(
            Rounding(
                sampling=sampling,
                way=way,
                steps=steps,
                total_steps=steps * self.epochs,
                mean_batch=float(used if rate else Fraction(self.participations * self.examples, steps)),
                sampling_probability=rate,
                safe=way in ("exact", safe),
            )
            for way, steps in ways.items()
        )

    def all_roundings(self) -> tuple[Rounding, ...]:
        """Return the roundings of allocation, then those of Poisson sampling."""
        return self.roundings("allocation") + self.roundings("poisson")

    def safe(self, sampling: str) -> Rounding:
        """Return the rounding whose upper bound holds for both."""
        return next(rounding for rounding in self.roundings(sampling) if rounding.safe)

    def fields(self, rounding: Rounding) -> dict[str, Any]:
        """Return the fields of the problem about the privacy of this run with this rounding."""
        fields: dict[str, Any] = {"steps": rounding.steps, "epochs": self.epochs}
        if rounding.sampling_probability is None:
            return fields | {"participations": self.participations}
        return fields | {"sampling_probability": rounding.sampling_probability}


def _above(exact: Fraction) -> float:
    """Return the least double that is not below a probability."""
    rate = float(exact)
    return rate if Fraction(rate) >= exact else min(1.0, math.nextafter(rate, 1.0))


def sampler_of(kind: type[Problem]) -> str | None:
    """Return the sampler of a kind of problem, if examples and batch size can replace its steps; or None."""
    sampling, _, asks = kind.name.rpartition("-")
    if asks not in ("epsilon", "delta"):
        return None
    return sampling if sampling in (*MORE_STEPS, *FEWER_STEPS) else None


def clash(sampling: str, parameters: Collection[str], given: Collection[str]) -> str | None:
    """Return a sentence if fields with examples or a batch size contradict one another; or None.

    Args:
        sampling: The sampler.
        parameters: Names of all fields of the problem, or of the phase.
        given: Names of the fields that were given.
    """
    if "drop_last" in given and ("batch_size" not in given or "steps" in given):
        return (
            "Expected examples and batch_size in place of steps for drop_last or keep_last, since they "
            "determine the last batch of an epoch."
        )
    if "batch_size" not in given:
        alone = "examples" in given and "examples" not in parameters
        return "Expected batch_size together with examples, got examples alone." if alone else None
    if "examples" not in given:
        return "Expected examples together with batch_size, got batch_size alone."
    replaced = ("sampling_probability",) if sampling in ANY_STEPS else ("sampling_probability", "steps")
    twice = next((name for name in replaced if name in given), None)
    return f"Expected {twice} or batch_size, got both." if twice else None


def from_sizes(kind: type[Problem], fields: Mapping[str, Any]) -> Problem:
    """Return the problem with these fields; examples and batch size may replace steps and probability.

    Args:
        kind: The kind of problem.
        fields: Its fields; with `examples` and `batch_size` only if it has a sampler (`sampler_of`).

    Raises:
        UnknownNameError: A field does not exist.
        DomainError: A field is missing or outside its domain, or fields contradict one another.
    """
    sampler = sampler_of(kind)
    if sampler is None or not SIZES.keys() & fields.keys():
        return kind.asked(fields)
    found = with_steps(sampler, kind.parameters, fields)
    if "dropped" in found:
        phase = f"shuffling(...,steps={found['steps']},dropped={found['dropped']!r})"
        raise DomainError(f"Expected run-{kind.asks} with phases={phase} for drop_last, got {kind.name}.")
    return kind.asked(found)


def with_steps(sampling: str, parameters: Collection[str], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields with the steps and the sampling probability that examples and batch size determine.

    The steps are rounded in the safe direction, or down if `drop_last` is true: an epoch leaves out the last
    batch unless it is full. Both numbers are left out unless the problem has them.

    Args:
        sampling: The sampler: a word of `--sampling`.
        parameters: Names of all fields of the problem, or of the phase.
        fields: Fields that were given, with `examples` and `batch_size`, and perhaps `drop_last`.

    Raises:
        DomainError: Fields contradict one another, or are outside their domains.

    Example:
        >>> with_steps("allocation", ("steps",), {"examples": 60_000, "batch_size": 256})
        {'steps': 234}
        >>> with_steps("shuffling", ("steps",), {"examples": 9, "batch_size": 4, "drop_last": True})
        {'steps': 2, 'dropped': 0.1111111111111111}
        >>> with_steps("shuffling", ("steps", "batch"), {"examples": 15, "batch_size": 4})
        {'steps': 3, 'batch': 4, 'kept': 0.2}
    """
    if why := clash(sampling, parameters, fields):
        raise DomainError(why)
    found = {name: value for name, value in fields.items() if name not in SIZES or name in parameters}
    word = found.pop("drop_last", False)
    if word not in (True, False, "true", "false"):
        raise DomainError(f"Expected drop_last true or false, got {str(word)[:50]!r}.")
    if "batch_size" not in fields:
        return found
    run = TrainingRun.checked(fields, any_steps="steps" in fields)
    rounding = run.safe(sampling)
    found.setdefault("steps", rounding.steps)
    if "sampling_probability" in parameters:
        found["sampling_probability"] = rounding.sampling_probability
    if run.left_out and word in (True, "true"):
        found["steps"] = run.examples // run.batch_size
        if sampling == "poisson":
            found["sampling_probability"] = run.rate_over(found["steps"])
        if sampling == "shuffling":
            found["dropped"] = run.left_out / run.examples
    elif "batch" in parameters and "steps" not in fields and found["steps"] >= SIZED_STEPS:
        found |= {"batch": run.batch_size} | ({"kept": run.left_out / run.examples} if run.left_out else {})
    return found
