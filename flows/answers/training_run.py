"""A training run as practitioners describe it: n examples in batches of b, and the safe rounding."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from flows.answers.ask import Asked, ask, is_tight
from flows.printing import as_json, exactly, rounded_down, rounded_up, show
from privcore import DomainError, Trend, find_problem
from privcore.params import EPOCHS, EXAMPLES, PARTICIPATIONS, STEPS

BATCH_SIZE = replace(
    EXAMPLES,
    name="batch_size",
    symbol="b",
    meaning="Average number of examples in a step, at one participation",
)

WHY = {
    "allocation": (
        "with fewer steps, an example is easier to find, so an upper bound of epsilon for the smaller number "
        "of steps holds for both"
    ),
    "poisson": (
        "every further step reveals more, so an upper bound of epsilon for the larger number of steps, at "
        "the same sampling probability, holds for both"
    ),
}
"""Reasons why a rounding is safe: with more steps, epsilon falls for allocation, and grows for Poisson."""


@dataclass(frozen=True, kw_only=True)
class Rounding:
    """One way to turn examples and batch size into steps.

    Attributes:
        sampling: `allocation` or `poisson`.
        way: `down`, `up`, or `exact` if the batch size divides the examples.
        steps: Steps of an epoch.
        total_steps: Steps of all epochs.
        mean_batch: Examples that a step uses on average.
        sampling_probability: Rate of Poisson sampling, never below the true one; None for allocation.
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
    def checked(cls, given: Mapping[str, object]) -> "TrainingRun":
        """Return the run with these numbers, named as the fields of this class.

        Raises:
            DomainError: A number is outside its domain, or examples, batch size and participations contradict
                one another.
        """
        domains = (EXAMPLES, BATCH_SIZE, EPOCHS, PARTICIPATIONS)
        run = cls(**{p.name: int(p.check(given[p.name])) for p in domains if p.name in given})
        n, b, k = run.examples, run.batch_size, run.participations
        if b > n:
            raise DomainError(f"Expected batch_size <= examples, got batch_size={b}, examples={n}.")
        if k * b > n:
            raise DomainError(
                "Expected participations <= examples / batch_size, the steps of an epoch, "
                f"got participations={k}, batch_size={b}, examples={n}."
            )
        STEPS.check(-(-n // b))
        return run

    @property
    def rate(self) -> float:
        """Probability with which Poisson sampling includes an example in a step: k b / n, rounded up."""
        exact = Fraction(self.participations * self.batch_size, self.examples)
        rate = float(exact)
        return rate if Fraction(rate) >= exact else min(1.0, math.nextafter(rate, 1.0))

    @property
    def quotient(self) -> str:
        """Text of n / b, cut after three decimals; without decimals if it is whole."""
        n, b = self.examples, self.batch_size
        return f"{n // b}" if n % b == 0 else f"{n // b}.{1000 * (n % b) // b:03d}"

    def roundings(self, sampling: str) -> tuple[Rounding, ...]:
        """Return both roundings of the steps, down and up; or the only one if b divides n.

        For allocation, rounding down is safe: it also bounds the run with one more step, since epsilon falls
        in the number of steps. For Poisson sampling at one rate, rounding up is safe, since epsilon grows.

        Args:
            sampling: `allocation` or `poisson`.
        """
        down, up = self.examples // self.batch_size, -(-self.examples // self.batch_size)
        ways = {"exact": down} if down == up else {"down": down, "up": up}
        safe = "up" if grows_with_steps(sampling) else "down"
        rate, used = self.rate if sampling == "poisson" else None, self.participations * self.batch_size
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

    def notes(self, sampling: str) -> list[str]:
        """Return notes about the number of steps, one sentence each.

        Args:
            sampling: `allocation`, `poisson`, or `none`, for which the number of steps does not matter.
        """
        name = "poisson" if sampling == "poisson" else "allocation"
        taken, *rest = sorted(self.roundings(name), key=lambda rounding: not rounding.safe)
        notes = [f"steps={taken.steps}: examples / batch_size, nothing to round."]
        if rest:
            told = f"{'more' if grows_with_steps(name) else 'fewer'} steps give a larger epsilon"
            if sampling == "none":
                told = "steps that do not use an example do not matter"
            notes[0] = (
                f"steps={taken.steps}: examples / batch_size = {self.quotient}, rounded {taken.way}, "
                f"since {told}; rounding {rest[0].way} gives steps={rest[0].steps}."
            )
        if self.participations > 1:
            notes.append(
                f"batch_size={self.batch_size} counts one participation: with participations="
                f"{self.participations} a step uses {taken.mean_batch:.6g} examples on average."
            )
        return notes


def grows_with_steps(sampling: str) -> bool:
    """Return whether epsilon is proved to grow with the steps of an epoch, and not to fall."""
    return find_problem(f"{sampling}-epsilon").monotone["steps"].trend is Trend.INCREASING


def epsilons(run: TrainingRun, noise: Mapping[str, Any], limit_seconds: float) -> list[Asked]:
    """Return brackets of epsilon for every rounding of a run, in the order of `all_roundings`.

    Args:
        run: The training run.
        noise: The fields sigma and delta, and adjacency if it is not the default.
        limit_seconds: As in `ask`.

    Raises:
        DomainError: Sigma or delta is missing, or outside its domain.
    """
    problems = [
        find_problem(f"{rounding.sampling}-epsilon").from_fields(run.fields(rounding) | dict(noise))
        for rounding in run.all_roundings()
    ]
    tight = lambda asked: is_tight(asked, 0.01)
    return [ask(problem, limit_seconds=limit_seconds, until=tight) for problem in problems]


def print_roundings(run: TrainingRun, asked: Sequence[Asked], json: bool) -> None:
    """Print both roundings of both schemes in one table, and the reasons for the safe rounding.

    Args:
        run: The training run.
        asked: Brackets of epsilon, one for each rounding; or an empty list.
        json: Whether to print JSON.
    """
    roundings = run.all_roundings()
    if json:
        rows = [asdict(rounding) for rounding in roundings]
        for row, one in zip(rows, asked, strict=False):
            row["epsilon"] = one.as_content()
        safe = {rounding.sampling: rounding.way for rounding in roundings if rounding.safe}
        quotient = run.examples / run.batch_size
        print(as_json({**asdict(run), "quotient": quotient, "safe": safe, "why": WHY, "roundings": rows}))
        return
    names = ["sampling", "round", "steps", "total", "probability", "mean batch", "safe"]
    lines = [
        [
            rounding.sampling,
            rounding.way,
            str(rounding.steps),
            str(rounding.total_steps),
            exactly(rounding.sampling_probability),
            f"{rounding.mean_batch:.6g}",
            "yes" if rounding.safe else "no",
        ]
        for rounding in roundings
    ]
    if asked:
        names += ["epsilon lower", "epsilon upper"]
        lines = [
            [*line, *([rounded_down(one.lower), rounded_up(one.upper)] if one.ok else ["", ""])]
            for line, one in zip(lines, asked, strict=True)
        ]
    title = f"examples / batch_size = {run.examples} / {run.batch_size} = {run.quotient} steps per epoch"
    title += f", epochs={run.epochs}, participations={run.participations}"
    show(names, lines, title=title)
    if len(roundings) == 2:
        print("nothing to round: the batch size divides the examples")
        return
    for sampling, why in WHY.items():
        print(f"{sampling}: rounding {run.safe(sampling).way} is safe: {why}")
