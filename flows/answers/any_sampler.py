"""Epsilon of a run whose sampler is unknown: the bracket that holds for every sampler of `compare`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from flows.answers.ask import UncoveredError
from flows.answers.compare import SchemeRow, problems
from flows.answers.compare_output import contents, print_rows
from flows.answers.explain import Explanation
from flows.answers.loaders import UNKNOWN, loader
from flows.answers.show import bracket_text, kind_of
from flows.answers.sourced import Sourced
from flows.printing import as_json, note, say
from privcore import Bracket, DomainError, LimitError, PrivsweepError, Problem, Status

OF_ONE = ("sampling_probability", "redraw", "largest_batch")
"""Options that describe one sampler, so that they contradict an unknown one."""


def candidates(
    options: Mapping[str, str | None], *, examples: str | None, batch_size: str | None
) -> tuple[dict[str, Problem], list[str]]:
    """Return the problems about a run under every sampler that its options describe, and notes to print.

    Args:
        options: As in `compare.problems`, and those of `OF_ONE`.
        examples: As in `training_question`.
        batch_size: As in `training_question`.

    Raises:
        DomainError: An option describes one sampler.
        PrivsweepError: As in `compare.problems`.
    """
    for name in OF_ONE:
        if options.get(name) is not None:
            raise DomainError(f"Expected no {name} with sampling {UNKNOWN}, since it describes one sampler.")
    rest = {name: value for name, value in options.items() if name not in OF_ONE}
    found, notes = problems(rest, examples=examples, batch_size=batch_size)
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
        return max(self.rows, key=lambda row: (_ends(row).upper, _ends(row).lower))

    @property
    def best(self) -> SchemeRow:
        """The row with the smallest lower end."""
        return min(self.rows, key=lambda row: (_ends(row).lower, _ends(row).upper))

    @property
    def bracket(self) -> Bracket:
        """The bracket from the smallest lower to the largest upper end; confidences by the union bound."""
        low, high = _ends(self.best), _ends(self.worst)
        doubts = sum(1.0 - _ends(row).confidence for row in self.rows)
        return Bracket(
            lower=low.lower,
            upper=high.upper,
            lower_by=low.lower_by,
            upper_by=high.upper_by,
            confidence=max(0.0, 1.0 - doubts),
            imported=tuple(dict.fromkeys((*low.imported, *high.imported))),
        )


def any_sampler(rows: Sequence[SchemeRow]) -> AnySampler:
    """Return the rows that apply to the run, with the bracket that holds for all of them.

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
    found = [row for row in rows if row.problem is not None]
    for row in found:
        if row.bracket is None:
            reason = "nothing is stored" if row.status == "missing" else row.notes[-1].rstrip(".")
            what = f"Nothing holds for every sampler, since {row.sampling} has no bracket: {reason}."
            raise kinds.get(row.status, PrivsweepError)(what)
    return AnySampler(rows=tuple(found))


def _ends(row: SchemeRow) -> Bracket:
    assert row.bracket is not None
    return row.bracket


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
            **({"imported": list(bracket.imported)} if bracket.imported else {}),
        }
        say(as_json(content | {"rows": contents(found.rows, explained)}))
        return
    say(f"{bracket_text(worst.problem, bracket)} for every sampler below")
    say(f"worst      {loader(worst.sampling)}")
    say(f"kind       {kind}\n")
    print_rows(found.rows, False, explained, notes)
