"""Answers for Python: a bracket with its methods and its source, several side by side, and reports."""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.answers.ask import LIMIT_SECONDS
from flows.answers.parse import loader
from flows.answers.show import NEIGHBOURS, bracket_text, kind_of
from flows.answers.sourced import Sourced
from flows.answers.training.any_sampler import AnySampler
from flows.answers.training.compare import SchemeRow
from flows.printing import as_json, as_text, exactly, html_table, listed, rounded_down, rounded_up
from privcore import Bracket, DomainError, Interval, LimitError, PrivsweepError, Problem, Status
from privsweep.words import is_several, spelled_in_python
from storage.schema import origin_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Pictured:
    """Base of answers that can be drawn."""

    def _pictured(self) -> "Iterable[Enclosure]":
        """Return the answers of the samplers."""
        raise NotImplementedError

    def plot(
        self,
        file: str | Path | None = None,
        *,
        over: str | None = None,
        tradeoff: bool = False,
        profile: bool = False,
        width: str = "column",
        dark: bool = False,
    ) -> Any:
        """Draw epsilon of each sampler over a parameter, as `privsweep plot` does; by default over sigma.

        Args:
            file: A file .svg, .png or .pdf; None returns a figure of matplotlib, which notebooks show.
            over: Parameter and values: `sigma=1,2,4`, `sigma=0.5..4`, or a name for half to twice its value.
            tradeoff: Whether to draw the trade-off curve of membership tests instead.
            profile: Whether to draw the privacy profile, delta over epsilon, instead.
            width: `column` or `text` of a journal.
            dark: Whether the ground is dark.

        Raises:
            DomainError: An argument is outside its domain, an answer is not about a training run, or one
                sampler lacks the parameter.
            MissingPackageError: matplotlib is not installed.
        """
        from privsweep.pictures import by_sampler, drawn

        found = by_sampler(one.problem for one in self._pictured())
        return drawn(found, file, over=over, tradeoff=tradeoff, profile=profile, width=width, dark=dark)


@dataclass(frozen=True, kw_only=True, repr=False)
class Enclosure(Pictured, Interval):
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
        answer: The answer of the commands, from which a statement is made; None if the sampler is unknown.
    """

    quantity: str
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
    answer: Sourced | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        """Return the bracket and its kind in one line."""
        return f"<{self.quantity} in [{rounded_down(self.lower)}, {rounded_up(self.upper)}], {self.kind}>"

    def statement(self, format: str = "text") -> str:
        """Return a statement about the answer for a paper or a model card.

        Args:
            format: `text` or `markdown`.

        Raises:
            DomainError: The format is unknown, or the sampler of the answer.
        """
        from flows.answers.training.statement import checked_format, statement

        word = checked_format(format)
        if self.answer is None:
            raise DomainError("Expected an answer about one sampler for a statement.")
        return statement(self.answer, limit_seconds=LIMIT_SECONDS).text(word)

    def _pictured(self) -> "Iterable[Enclosure]":
        return self.samplers.values() or [self]

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


class Comparison(Pictured, Mapping[str, Enclosure]):
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

    def _pictured(self) -> Iterable[Enclosure]:
        return self._found.values()

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


def enclosure(answer: Sourced, notes: Iterable[str] = (), **further: Any) -> Enclosure:
    """Return an answer as an enclosure.

    Args:
        answer: An answer of the commands.
        notes: Sentences about the question.
        further: Other attributes of the enclosure.

    Raises:
        LimitError: A limit on time or memory stopped all methods.
        PrivsweepError: No method answers the problem, or methods contradict one another.
    """
    if not answer.ok:
        limits = {Status.TIMEOUT.value, Status.OUT_OF_MEMORY.value}
        kind = LimitError if answer.status in limits else PrivsweepError
        raise kind(answer.detail)
    return replace(from_bracket(answer.problem, answer.bracket, answer.told, notes), answer=answer, **further)


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


class Enclosures(Sequence[Enclosure]):
    """Enclosures for arrays of arguments, in their common shape; `answers[k]` is one enclosure or a row.

    Attributes:
        shape: The shape.
        varied: The arguments that are arrays, by name, each in the shape of the enclosures.
    """

    def __init__(self, found: "NDArray[np.object_]", varied: "Mapping[str, NDArray[Any]]") -> None:
        self._found = found
        self.varied = dict(varied)
        self.shape: tuple[int, ...] = found.shape

    @property
    def lower(self) -> "NDArray[np.float64]":
        """Lower ends, rounded down."""
        return self._ends("lower")

    @property
    def upper(self) -> "NDArray[np.float64]":
        """Upper ends, rounded up."""
        return self._ends("upper")

    def _ends(self, end: str) -> "NDArray[np.float64]":
        import numpy as np

        return np.array([getattr(each, end) for each in self._found.flat], dtype=float).reshape(self.shape)

    def __len__(self) -> int:
        """Return the length of the first axis."""
        return len(self._found)

    def __getitem__(self, place: Any) -> Any:
        """Return one enclosure, or several of them."""
        found = self._found[place]
        if isinstance(found, Enclosure):
            return found
        return Enclosures(found, {name: values[place] for name, values in self.varied.items()})

    def frame(self, kind: str = "pandas") -> Any:
        """Return a row for each enclosure, with the arguments that are arrays.

        Args:
            kind: `arrow`, `pandas` or `polars`.

        Raises:
            MissingPackageError: The package of this kind is not installed.
        """
        columns = {name: values.ravel().tolist() for name, values in self.varied.items()}
        for name in ("lower", "upper", "lower_method", "upper_method", "confidence"):
            columns[name] = [getattr(each, name) for each in self._found.flat]
        return frame_of(columns, kind)

    def plot(self, file: str | Path | None = None) -> Any:
        """Draw the lower and the upper ends over the first argument that is an array.

        Args:
            file: A file .svg, .png or .pdf; None returns a figure of matplotlib.

        Raises:
            DomainError: The file has another suffix, or the enclosures have more than one axis.
            MissingPackageError: matplotlib is not installed.
        """
        from privsweep.pictures import drawn_ends

        if len(self.shape) != 1:
            raise DomainError(f"Expected enclosures with one axis for a plot, got the shape {self.shape}.")
        name, places = next(iter(self.varied.items()))
        problems = [one.problem for one in self._found]
        return drawn_ends(problems, (self.lower.tolist(), self.upper.tolist()), (name, places.tolist()), file)

    def __repr__(self) -> str:
        """Return a line for each enclosure, at most ten."""
        names = [*self.varied, "lower", "upper"]
        rows = list(self._rows())[:SHOWN]
        left = f"\n... {self._found.size - SHOWN} more" if self._found.size > SHOWN else ""
        return as_text(names, rows) + left

    def _repr_html_(self) -> str:
        return html_table([*self.varied, "lower", "upper"], list(self._rows()))

    def _rows(self) -> Iterator[list[str]]:
        columns = [values.ravel().tolist() for values in self.varied.values()]
        for one, *places in zip(self._found.ravel().tolist(), *columns, strict=True):
            yield [*map(exactly, places), rounded_down(one.lower), rounded_up(one.upper)]


SHOWN = 10
"""Enclosures that `repr` shows."""


def broadcast(one: Callable[[dict[str, Any]], Any], words: Mapping[str, Any]) -> Any:
    """Return the answer to words, or answers in the common shape of those that are arrays.

    Args:
        one: Function that answers words without arrays.
        words: The arguments; None if not given.

    Raises:
        DomainError: The shapes of arrays do not fit one another.
    """
    given = {name: value for name, value in words.items() if value is not None}
    varied = {name: value for name, value in given.items() if is_several(value)}
    if not varied:
        return one(given)
    import numpy as np

    try:
        arrays = dict(zip(varied, np.broadcast_arrays(*map(np.asarray, varied.values())), strict=True))
    except ValueError as error:
        raise DomainError(f"Expected arrays whose shapes fit one another: {error}.") from None
    for name, array in arrays.items():
        if array.dtype == object and any(each is None for each in array.flat):
            raise DomainError(f"Expected a value in each place of {name}, got None.")
    shape = next(iter(arrays.values())).shape
    found = np.empty(shape, dtype=object)
    for place in np.ndindex(shape):
        found[place] = one({**given, **{name: array.item(place) for name, array in arrays.items()}})
    if not found.size or isinstance(found.flat[0], Enclosure):
        return Enclosures(found, arrays)
    return found


class Report(Mapping[str, Any]):
    """The content of the JSON of a command, by key; `print` shows the text of the command."""

    def __init__(
        self,
        content: Mapping[str, Any],
        rows: str,
        show: Callable[[], None],
        plot: Callable[[str | Path], None] | None = None,
    ) -> None:
        self._content, self._rows, self._show, self._plot = dict(content), rows, show, plot

    def __getitem__(self, key: str) -> Any:
        """Return the value of a key of the JSON."""
        return self._content[key]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys of the JSON."""
        return iter(self._content)

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._content)

    def frame(self, kind: str = "pandas") -> Any:
        """Return the rows of the report as a frame.

        Args:
            kind: `arrow`, `pandas` or `polars`.

        Raises:
            DomainError: The report has no rows.
            MissingPackageError: The package of this kind is not installed.
        """
        if not self._rows:
            raise DomainError("This report has no rows for a frame: its numbers are under its keys.")
        rows = [_flat(row) for row in self._content[self._rows]]
        names = list(dict.fromkeys(name for row in rows for name in row))
        return frame_of({name: [row.get(name) for row in rows] for name in names}, kind)

    def plot(self, file: str | Path) -> None:
        """Draw the chart of the report into a file.

        Args:
            file: A file .svg, .png, .pdf or .html.

        Raises:
            DomainError: The report has no chart, or the file another suffix.
            MissingPackageError: A package of the extra `report` is not installed.
        """
        if self._plot is None:
            raise DomainError("This report has no chart.")
        self._plot(file)

    def __str__(self) -> str:
        """Return the text of the command."""
        printed = io.StringIO()
        with redirect_stdout(printed):
            self._show()
        return str(spelled_in_python(printed.getvalue().rstrip("\n")))

    def __repr__(self) -> str:
        """Return the keys in one line."""
        return f"<report with {', '.join(self._content)}>"

    def _repr_html_(self) -> str:
        return html_table((), [(line,) for line in str(self).splitlines()])


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with the numbers of `at` as columns, and texts in place of other lists and mappings."""
    found = {name: value for name, value in row.items() if name != "at"} | dict(row.get("at", {}))
    return {
        name: as_json(value) if isinstance(value, Mapping | list) else value for name, value in found.items()
    }


def frame_of(columns: Mapping[str, Any], kind: str) -> Any:
    """Return columns as a frame of this kind."""
    from storage.export import converter, to_arrow

    return converter(kind)(to_arrow(columns))
