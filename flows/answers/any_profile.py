"""The profile of a run whose sampler is unknown: every number with ends that hold for every sampler."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.answers.loaders import UNKNOWN
from flows.answers.run_phases import adjacency_of, phases_of
from privcore import Problem
from privcore.training import ProfileLine, RunProfile, run_profile, written

SMALLER_IS_WORSE = "false_positive_rate"
"""The quantity of a membership test that is worse for privacy if it is smaller."""


@dataclass(frozen=True, kw_only=True)
class AnyProfile(RunProfile):
    """The profile that holds for every sampler.

    Attributes:
        profiles: The profile of each sampler.
        worst: The sampler with the worst end of each line: the largest upper end, or the smallest lower end
            of a false positive rate.
    """

    profiles: Mapping[str, RunProfile]
    worst: Sequence[str]

    def as_content(self) -> dict[str, Any]:
        """Return the content of the JSON output."""
        content = super().as_content()
        content["profile"] = [
            line | {"worst": worst} for line, worst in zip(content["profile"], self.worst, strict=True)
        ]
        each = {name: profile.as_content() for name, profile in self.profiles.items()}
        return content | {"sampling": UNKNOWN, "samplers": each}


def any_profile(asked: Mapping[str, Problem], numbers: Mapping[str, Sequence[object]]) -> AnyProfile:
    """Compute the profile that holds for every sampler.

    Args:
        asked: Problems about epsilon of the run, by sampler.
        numbers: As in `run_profile`.

    Raises:
        PrivsweepError: As in `run_profile`.
    """
    relations = {name: adjacency_of(problem) for name, problem in asked.items()}
    profiles = {
        name: run_profile(written(phases_of(problem)), relations[name], numbers)
        for name, problem in asked.items()
    }
    lines, worst = [], []
    for row in zip(*(profile.lines for profile in profiles.values()), strict=True):
        by_name = dict(zip(profiles, row, strict=True))
        lines.append(_hull(row))
        worst.append(min(by_name, key=lambda name: _rank(by_name[name])))
    curves = [profile.powers for profile in profiles.values()]
    return AnyProfile(
        phases=f"any of {', '.join(profiles)}",
        adjacency=_together(relations),
        lines=lines,
        unamplified=max(profile.unamplified for profile in profiles.values()),
        rates=next(iter(profiles.values())).rates,
        powers=(
            [min(ends) for ends in zip(*(lower for lower, _ in curves), strict=True)],
            [max(ends) for ends in zip(*(upper for _, upper in curves), strict=True)],
        ),
        profiles=profiles,
        worst=worst,
    )


def _hull(lines: Sequence[ProfileLine]) -> ProfileLine:
    """Return the number with ends that hold for all lines, which are about the same quantity."""
    (quantity,) = {line.quantity for line in lines}
    assert all(line.at == lines[0].at for line in lines)
    return ProfileLine(
        quantity=quantity,
        at=lines[0].at,
        lower=min(line.lower for line in lines),
        upper=max(line.upper for line in lines),
    )


def _rank(line: ProfileLine) -> tuple[float, float]:
    """Return the ends of a line such that the worst line is the smallest."""
    if line.quantity == SMALLER_IS_WORSE:
        return line.lower, line.upper
    return -line.upper, -line.lower


def _together(relations: Mapping[str, str]) -> str:
    """Return the neighbouring relations: that of the first sampler, and the others with their samplers."""
    first, *others = dict.fromkeys(relations.values())
    named = {
        each: ", ".join(name for name, relation in relations.items() if relation == each) for each in others
    }
    return first + "".join(f" ({each} for {names})" for each, names in named.items())
