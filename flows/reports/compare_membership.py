"""All bounds on one problem of membership inference as intervals, one below another."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from flows.answers.ask import UncoveredError
from flows.answers.catalogue import meaning_of
from flows.answers.sweep_table import Line
from flows.printing import counted, listed
from flows.reports.comparison import lacking
from flows.reports.document import Block, Document, Heading, Paragraph
from flows.reports.plot import Mark, Plot, drawable
from flows.reports.stored import StoredAnswer, check_exists, provenance, source, stored
from flows.reports.summary import summary
from flows.reports.tables import contradictions_about, of_answers
from privcore import PROBLEMS, Problem, intersect
from storage import Store
from storage.schema import IMPORTS

NAME = "compare-membership"
TOPIC = "membership"


def compare_membership(store: Store) -> Document:
    """Return the bounds on every problem of membership inference that several methods have answered.

    Args:
        store: Opened with `missing_ok`.

    Raises:
        UncoveredError: The store has no problem with answers of two methods.
        StoreError: The store cannot be read.
    """
    found: dict[type[Problem], list[StoredAnswer]] = {}
    check_exists(store)
    for kind in PROBLEMS:
        if kind.topic == TOPIC and (several := _several(stored(store, kind))):
            found[kind] = several
    if not found:
        raise UncoveredError(
            lacking(
                "two methods' answers to one problem of membership inference",
                lambda problem, _: problem == _USUAL,
            )
        )
    blocks: list[Block] = [
        Heading(text="All stored bounds on membership inference, as intervals", level=1),
        *summary(list(_lines(found))),
        Heading(text="How to read the charts"),
        Paragraph(
            text="Each chart shows one problem at a time, with the answer of every method: an upper bound "
            "is a bar from the left edge, a lower bound is a bar to the right edge, and the truth "
            "lies in every proved interval. Answers with a confidence below 1 have another "
            "colour, and so have answers of lookup tables."
        ),
    ]
    for kind, answers in found.items():
        blocks += [Heading(text=kind.name), Paragraph(text=meaning_of(kind))]
        blocks += _plot(kind, answers)
        blocks.append(of_answers(kind, answers, counted(len(answers), "answer")))
    rows = [answer for answers in found.values() for answer in answers]
    contradicted = contradictions_about(store, [kind.name for kind in found])
    blocks += contradicted.blocks
    blocks += provenance(rows, degraded=store.degraded)
    return Document(name=NAME, blocks=blocks, incomplete=contradicted.incomplete, source=source(rows))


def _lines(found: Mapping[type[Problem], Sequence[StoredAnswer]]) -> Iterator[Line]:
    """Yield every problem with the intersection of its proved bounds, unless they contradict each other."""
    for kind, answers in found.items():
        several: dict[str, list[StoredAnswer]] = {}
        for answer in answers:
            if answer.proved:
                several.setdefault(answer.row["problem_id"], []).append(answer)
        for some in several.values():
            bracket = intersect([answer.bracket for answer in some], kind.largest)
            if not bracket.crossed:
                yield Line(problem=kind.from_fields(some[0].fields), bracket=bracket)


_USUAL = "membership-advantage"


def _several(answers: Sequence[StoredAnswer]) -> list[StoredAnswer]:
    """Return the answers to problems that more than one method has answered."""
    methods: dict[str, set[str]] = {}
    for answer in answers:
        if answer.ok:
            methods.setdefault(answer.row["problem_id"], set()).add(answer.method)
    return [answer for answer in answers if answer.ok and len(methods.get(answer.row["problem_id"], ())) > 1]


def _plot(kind: type[Problem], answers: Sequence[StoredAnswer]) -> Iterator[Plot]:
    """Yield the chart of a kind of problem."""
    varied = [name for name in kind.parameters if len({answer.fields[name] for answer in answers}) > 1]
    count = Counter(
        answer.row["problem_id"] for answer in answers
    )  # to sort the problems with most answers first
    marks, notes = drawable(
        Mark(
            x=answer.method,
            series=IMPORTS if answer.bracket.tables else "proved" if answer.proved else "no proof",
            setting=listed({name: answer.fields[name] for name in varied}),
            bracket=answer.bracket,
            value=answer.row["value"],
            largest=kind.largest,
        )
        for answer in sorted(
            answers, key=lambda answer: (-count[answer.row["problem_id"]], not answer.proved)
        )
    )
    if marks:
        yield Plot(
            name=f"{NAME}-{kind.name.removeprefix(f'{TOPIC}-')}",
            title=f"{kind.asks.capitalize()} of {kind.name}, by method",
            x_name="method",
            y_name=kind.asks,
            series_name="",
            marks=marks,
            notes=notes,
            intervals=True,
        )
