"""The least noise that suffices for every sampler of a run whose sampler is unknown."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from flows.answers.ask import Asked
from flows.answers.loaders import UNKNOWN, loader
from flows.answers.noise import Noise, find_noise, sigma_of
from flows.answers.noise_confirmed import Again, confirmed, suffices
from flows.answers.run_phases import adjacency_of
from flows.printing import exactly
from privcore import Problem
from privcore.params import SIGMA


@dataclass(frozen=True, kw_only=True)
class NoiseForAny(Noise):
    """A noise multiplier that suffices for every sampler, and a smaller one, too small for some sampler.

    Attributes:
        samplers: The problems at the returned sigma, by sampler; `enough` is the bracket of the worst one.
    """

    samplers: Mapping[str, Problem]

    @property
    def worst(self) -> str:
        """The sampler with the largest epsilon at the returned sigma."""
        return next(name for name, each in self.samplers.items() if each == self.enough.problem)

    @property
    def relations(self) -> dict[str, str]:
        """The neighbouring relation of each sampler."""
        return {name: adjacency_of(each) for name, each in self.samplers.items()}

    def as_content(self) -> dict[str, Any]:
        """Return the noise multipliers and their proofs for JSON."""
        return super().as_content() | {
            "sampling": UNKNOWN,
            "worst": self.worst,
            "relations": self.relations,
        }

    def _title(self) -> str:
        return f"epsilon at most {exactly(self.target)} for every sampler; worst {loader(self.worst)}"


def find_noise_any(
    asked: Mapping[str, Problem],
    target: float,
    again: Again,
    *,
    precision: float,
    limit_seconds: float,
) -> NoiseForAny:
    """Return the least sigma at which epsilon of every sampler is proved to be at most the target.

    Epsilon of every sampler falls in sigma, so a sigma that does not suffice for one of them does not suffice
    for all of them.

    Args:
        asked: Problems about epsilon by sampler, with any sigma.
        target: Largest epsilon that is allowed.
        again: Function that answers a problem with the settings of `privsweep epsilon`.
        precision: As in `find_noise`.
        limit_seconds: As in `find_noise`.

    Raises:
        PrivsweepError: As in `find_noise` and `confirmed`.
    """
    known = cache(again)

    def together(problem: Problem) -> Asked:
        """Return the largest bracket of all samplers at the sigma of a problem, or a failed answer."""
        sigma = float(problem.as_fields()["sigma"])
        found = [known(at(each, sigma)) for each in asked.values()]
        failed = next((each for each in found if not each.ok or each.confidence < 1.0), None)
        return failed or max(found, key=lambda each: (each.upper, each.lower))

    searched: list[Noise] = []
    for name in sorted(asked, key=lambda name: name != "none"):  # the fastest, and often the worst
        if searched and suffices(known(at(asked[name], max(each.sigma for each in searched))), target):
            continue
        fields = {field: value for field, value in asked[name].as_fields().items() if field != "sigma"}
        kind = type(asked[name])
        searched.append(find_noise(kind, fields, target, precision=precision, limit_seconds=limit_seconds))
    most = max(searched, key=lambda each: each.sigma)
    short = max((each.short for each in searched if each.short), key=sigma_of, default=None)
    least = replace(most, short=short, brackets=sum(each.brackets for each in searched))
    found = confirmed(least, together, precision=precision, largest=SIGMA.upper)
    return NoiseForAny(  # without `least`, the narrower bracket of the search, which is that of one sampler
        target=found.target,
        enough=found.enough,
        short=found.short,
        brackets=found.brackets,
        samplers={name: at(each, found.sigma) for name, each in asked.items()},
    )


def at(problem: Problem, sigma: float) -> Problem:
    """Return a problem with another sigma."""
    return type(problem).from_fields({**problem.as_fields(), "sigma": sigma})
