"""A run whose sampler is unknown: epsilon and every other number, with ends that hold for every sampler."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from flows.answers.ask import UncoveredError
from flows.answers.explain import Explanation
from flows.answers.parse import DROP_LAST, UNKNOWN, loader
from flows.answers.question import OF_ONE, adjacency_of, question, run_of
from flows.answers.show import bracket_text, kind_of
from flows.answers.sourced import Sourced
from flows.answers.training.compare import SIZED, SchemeRow, problems
from flows.answers.training.compare_output import contents, print_rows
from flows.printing import as_json, exactly, listed, note, rounded_down, rounded_up, say, show
from flows.spec.words import value_of
from privcore import Bracket, DomainError, LimitError, PrivsweepError, Problem, Status
from privcore.training import ProfileLine, RunProfile, run_profile
from storage.schema import import_content


def candidates(words: Mapping[str, Any]) -> tuple[dict[str, Problem], list[str]]:
    """Return the problems about a run under every sampler that its words describe, and notes to print.

    Args:
        words: As in `question`.

    Raises:
        DomainError: An option describes one sampler.
        PrivsweepError: As in `compare.problems`.
    """
    for name in OF_ONE:
        if name in words:
            raise DomainError(f"Expected no {name} with sampling {UNKNOWN}, since it describes one sampler.")
    found, notes = problems(words)
    found.pop(SIZED, None)  # its better upper end would not be that of the worst sampler, and takes long
    return found | {"none": found.pop("none")}, notes  # in the order of `rows`


@dataclass(frozen=True, kw_only=True)
class AnySampler:
    """The rows of `compare`, and the bracket that holds for all of them.

    Attributes:
        rows: The rows of the samplers that apply to the run, each with a bracket.
    """

    rows: tuple[SchemeRow, ...]

    @property
    def worst(self) -> SchemeRow:
        """The row with the largest upper end."""
        return max(self.rows, key=lambda row: (row.ends.upper, row.ends.lower))

    @property
    def best(self) -> SchemeRow:
        """The row with the smallest lower end."""
        return min(self.rows, key=lambda row: (row.ends.lower, row.ends.upper))

    @property
    def bracket(self) -> Bracket:
        """The bracket from the smallest lower to the largest upper end; confidences by the union bound."""
        low, high = self.best.ends, self.worst.ends
        doubts = sum(1.0 - row.ends.confidence for row in self.rows)
        return Bracket(
            lower=low.lower,
            upper=high.upper,
            lower_by=low.lower_by,
            upper_by=high.upper_by,
            confidence=max(0.0, 1.0 - doubts),
        )


def any_sampler(rows: Sequence[SchemeRow]) -> AnySampler:
    """Return the rows that apply to the run, with the bracket that holds for all of them.

    The second row of shuffling is left out if it has no bracket and the first one is about the same relation:
    its upper end, at most that of no amplification, holds for all loaders that shuffle.

    Raises:
        UncoveredError: Nothing is stored for a row, and it must not be computed.
        LimitError: A limit stopped the methods of a row.
        PrivsweepError: A row has no bracket for another reason.
    """
    kinds: dict[str, type[PrivsweepError]] = {
        "missing": UncoveredError,
        Status.TIMEOUT.value: LimitError,
        Status.OUT_OF_MEMORY.value: LimitError,
    }
    relations = {row.sampling: adjacency_of(row.problem) for row in rows if row.problem is not None}
    covered = relations.get(DROP_LAST) == relations.get("shuffling")
    found = [
        row
        for row in rows
        if row.problem is not None and (row.bracket or row.sampling != DROP_LAST or not covered)
    ]
    for row in found:
        if row.bracket is None:
            reason = "nothing is stored" if row.status == "missing" else row.notes[-1].rstrip(".")
            what = f"Nothing holds for every sampler, since {row.sampling} has no bracket: {reason}."
            raise kinds.get(row.status, PrivsweepError)(what)
    return AnySampler(rows=tuple(found))


def print_any(
    found: AnySampler,
    json: bool,
    explained: Callable[[Sourced], Explanation] | None,
    notes: Sequence[str] = (),
) -> None:
    """Print the bracket that holds for every sampler, the worst sampler, and the rows.

    Args:
        found: The rows.
        json: Whether to print JSON.
        explained: Function that explains an answer; None without explanations.
        notes: As in `print_rows`.
    """
    bracket, worst = found.bracket, found.worst
    assert worst.problem is not None
    kind = kind_of(worst.problem, bracket)
    if json:
        note(*notes)
        content = {
            "sampling": UNKNOWN,
            "lower": bracket.lower,
            "upper": bracket.upper,
            "confidence": bracket.confidence,
            "status": Status.OK,
            "kind": kind,
            "lower_method": bracket.lower_by or None,
            "upper_method": bracket.upper_by or None,
            "best": found.best.sampling,
            "worst": worst.sampling,
            **import_content(bracket.tables),
        }
        say(as_json(content | {"rows": contents(found.rows, explained)}))
        return
    say(f"{bracket_text(worst.problem, bracket)} for every sampler below")
    say(f"worst      {loader(worst.sampling)}")
    say(f"kind       {kind}\n")
    print_rows(found.rows, False, explained, notes)


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
    runs = {name: run_of(problem) for name, problem in asked.items()}
    relations = {name: run["adjacency"] for name, run in runs.items()}
    profiles = {name: run_profile(**run, numbers=numbers) for name, run in runs.items()}
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


def profile_of(
    words: Mapping[str, Any], numbers: Mapping[str, Sequence[object]]
) -> tuple[Callable[[], RunProfile], list[str]]:
    """Return the function that computes the profile of a run, and notes about the question.

    Args:
        words: As in `question`, or with `sampling` `unknown`. Epsilon is asked at the delta of the file of a
            run, unless `numbers` has deltas.
        numbers: As in `run_profile`, as texts or numbers.

    Raises:
        PrivsweepError: As in `question`.
    """
    at = {name: [value_of(each, name) for each in values] for name, values in numbers.items()}
    if words.get("sampling") == UNKNOWN and "run" not in words:
        asked, notes = candidates({**words, "delta": 1e-300})  # the profile is that of every delta
        return partial(any_profile, asked, at), notes
    asked_run = question(words)
    if "run" in words and "delta" in asked_run.fields and not at.get("delta"):
        at["delta"] = [asked_run.fields["delta"]]
    return partial(run_profile, **asked_run.run, numbers=at), asked_run.notes


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


def print_profile(profile: RunProfile, json: bool) -> None:
    """Print a profile as a table with its meaning, or as JSON.

    Args:
        profile: The profile.
        json: Whether to print JSON.
    """
    if json:
        say(as_json(profile.as_content()))
        return
    names = ["quantity", "at", "lower", "upper"]
    rows = [
        [line.quantity, listed(line.at), rounded_down(line.lower), rounded_up(line.upper)]
        for line in profile.lines
    ]
    if isinstance(profile, AnyProfile):
        names.append("worst")
        rows = [[*row, worst] for row, worst in zip(rows, profile.worst, strict=True)]
    show(
        names,
        rows,
        title=f"{profile.phases} adjacency={profile.adjacency}",
        heading="quantity",
    )
    say(
        "mu holds for false positive rates from the smallest rate to 1 minus this rate; over all rates it is "
        f"that of the run without sampling, {exactly(float(rounded_up(profile.unamplified)))}"
    )
