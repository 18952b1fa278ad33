"""Answers for Python: a bracket with its methods and its source, and several of them side by side."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flows.answers.any_sampler import AnySampler
from flows.answers.compare import SchemeRow
from flows.answers.parse import loader
from flows.answers.show import NEIGHBOURS, bracket_text, kind_of
from flows.answers.sourced import Sourced
from flows.printing import exactly, html_table, listed, rounded_down, rounded_up
from privcore import Bracket, LimitError, PrivsweepError, Problem, Status
from storage.schema import origin_text


@dataclass(frozen=True, kw_only=True)
class Enclosure:
    """A proved bracket of a number: the truth lies in [lower, upper].

    Attributes:
        quantity: The number that is bounded, such as `epsilon`.
        lower: Lower end, rounded down.
        upper: Upper end, rounded up.
        lower_method: Method of the lower end, or None if no method gives one.
        upper_method: Method of the upper end, or None if no method gives one.
        confidence: Probability with which both ends hold; 1 if they are proved.
        kind: Kind of bound in words, such as `enclosure, proved`.
        source: Origin of the answer in words: the store, the shipped table, or a computation.
        problem: The problem with all its parameters.
        notes: Sentences about the way the question was read, such as the rounding of steps.
        imported: Lookup tables from which an end was imported; it was not recomputed here.
        likely: Narrower bracket with a confidence below 1 that simulations give, or None.
        estimates: Numbers that prove nothing, by the methods that gave them.
        worst: The sampler with the largest upper end, if the sampler is unknown; its problem is `problem`.
        samplers: The enclosure of each sampler, if the sampler is unknown.
    """

    quantity: str
    lower: float
    upper: float
    lower_method: str | None
    upper_method: str | None
    confidence: float
    kind: str
    source: str
    problem: Problem = field(repr=False)
    notes: tuple[str, ...] = ()
    imported: tuple[str, ...] = ()
    likely: Bracket | None = None
    estimates: Mapping[str, float] = field(default_factory=dict)
    worst: str = ""
    samplers: "Mapping[str, Enclosure]" = field(default_factory=dict)

    @property
    def fields(self) -> dict[str, Any]:
        """Parameters of the problem, by name."""
        return self.problem.as_fields()

    @property
    def neighbours(self) -> str:
        """Neighbouring relation of an audit, which has no parameter for it, in words; empty for others."""
        return NEIGHBOURS.get(self.problem.relation(), "")

    def __str__(self) -> str:
        """Return the answer in lines, as the command prints it."""
        head = f"{self.quantity} in [{rounded_down(self.lower)}, {rounded_up(self.upper)}]"
        return "\n".join([head, *(f"{name:10} {text}" for name, text in self._lines())])

    def _repr_html_(self) -> str:
        head = f"{self.quantity} \N{ELEMENT OF} [{rounded_down(self.lower)}, {rounded_up(self.upper)}]"
        return html_table((), list(self._lines()), title=head)

    def _lines(self) -> Iterator[tuple[str, str]]:
        if self.likely is not None:
            yield "likely", bracket_text(self.problem, self.likely)
        if self.estimates:
            yield "estimate", ", ".join(f"{value:.6g} ({name})" for name, value in self.estimates.items())
        if self.worst:
            yield "worst", loader(self.worst)
            for name, one in self.samplers.items():
                yield name, f"[{rounded_down(one.lower)}, {rounded_up(one.upper)}] {one.fields['adjacency']}"
        else:
            yield "problem", f"{self.problem.name} {listed(self.fields)}"
        yield "kind", self.kind
        yield "method", methods_of(self)
        yield "source", self.source
        if self.neighbours:
            yield "neighbours", self.neighbours
        for note in self.notes:
            yield "note", note


class Comparison(Mapping[str, Enclosure]):
    """Enclosures of the same training run under several samplers, by the name of the sampler.

    Attributes:
        missing: Reasons why a sampler has no enclosure, by its name.
    """

    def __init__(self, found: Mapping[str, Enclosure], missing: Mapping[str, str]) -> None:
        self._found = dict(found)
        self.missing = dict(missing)

    def __getitem__(self, sampler: str) -> Enclosure:
        """Return the enclosure of a sampler."""
        return self._found[sampler]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the samplers that have an enclosure."""
        return iter(self._found)

    def __len__(self) -> int:
        """Return the number of samplers that have an enclosure."""
        return len(self._found)

    def __repr__(self) -> str:
        """Return one line for each sampler."""
        width = max(map(len, [*self._found, *self.missing]), default=0)
        lines = [f"{name:{width}}  {text}" for name, text, _ in self._rows()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table(("sampler", "bracket", "method"), list(self._rows()))

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        for name, one in self._found.items():
            ends = f"[{rounded_down(one.lower)}, {rounded_up(one.upper)}]"
            yield name, f"{ends}{origin_text(one.imported, ' (', ')')}", methods_of(one)
        for name, reason in self.missing.items():
            yield name, reason, ""


def methods_of(answer: Enclosure) -> str:
    """Return the methods of both ends in words."""
    return ", ".join(dict.fromkeys(filter(None, (answer.lower_method, answer.upper_method))))


def enclosure(answer: Sourced, notes: Iterable[str] = ()) -> Enclosure:
    """Return an answer as an enclosure.

    Args:
        answer: An answer of the commands.
        notes: Sentences about the question.

    Raises:
        LimitError: A limit on time or memory stopped all methods.
        PrivsweepError: No method answers the problem, or methods contradict one another.
    """
    if not answer.ok:
        limits = {Status.TIMEOUT.value, Status.OUT_OF_MEMORY.value}
        kind = LimitError if answer.status in limits else PrivsweepError
        raise kind(answer.detail)
    return from_bracket(answer.problem, answer.bracket, answer.told, notes)


def from_bracket(problem: Problem, bracket: Bracket, source: str, notes: Iterable[str] = ()) -> Enclosure:
    """Return a bracket of a problem as an enclosure; a note states the assumption about a file."""
    assumed = problem.assumption()
    return Enclosure(
        quantity=problem.asks,
        lower=bracket.lower,
        upper=bracket.upper,
        lower_method=bracket.lower_by or None,
        upper_method=bracket.upper_by or None,
        confidence=bracket.confidence,
        kind=kind_of(problem, bracket),
        source=source,
        problem=problem,
        notes=(*notes, f"assumed: {exactly(assumed)}") if assumed else tuple(notes),
        imported=bracket.tables,
    )


def comparison(rows: Iterable[SchemeRow], notes: Sequence[str]) -> Comparison:
    """Return the rows about one run as enclosures, and the reasons of those without a bracket.

    Args:
        rows: The rows.
        notes: Sentences about the run.
    """
    found: dict[str, Enclosure] = {}
    missing: dict[str, str] = {}
    for row in rows:
        if row.answer is not None and row.bracket is not None:
            said = [*notes, *row.notes]
            found[row.sampling] = from_bracket(row.answer.problem, row.bracket, row.answer.told, said)
        else:
            missing[row.sampling] = " ".join(row.notes) or "nothing is stored"
    return Comparison(found, missing)


def of_any(found: AnySampler, notes: Sequence[str]) -> Enclosure:
    """Return the enclosure that holds for every sampler.

    Args:
        found: The rows.
        notes: Sentences about the run.
    """
    samplers, worst = comparison(found.rows, ()), found.worst
    whole = from_bracket(
        samplers[worst.sampling].problem, found.bracket, "that of each sampler, in `samplers`", notes
    )
    return replace(whole, worst=worst.sampling, samplers=samplers)
