"""Contradictions between methods in a report: a table at its end, and the sentence for its exit code."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from flows.reports.document import Block, Heading, counted
from flows.reports.stored import conflicts, stored
from flows.reports.tables import of_conflicts
from privcore import Problem, find_problem
from storage import Store
from storage.contradictions import remedy


@dataclass(frozen=True, kw_only=True)
class Contradictions:
    """The contradictions about some problems; all empty if there are none.

    Attributes:
        asked: The problems, by their ids.
        blocks: Heading and table.
        incomplete: The sentence for the exit code.
    """

    asked: Mapping[str, Problem]
    blocks: Sequence[Block] = ()
    incomplete: Sequence[str] = ()


def contradictions_of(found: Sequence[Mapping[str, object]], asked: Mapping[str, Problem]) -> Contradictions:
    """Return the contradictions as parts of a report.

    Args:
        found: From `conflicts`.
        asked: The problems, by their ids.
    """
    if not found:
        return Contradictions(asked={})
    ids = {each["problem_id"] for each in found}
    sources = {str(each[f"{end}_import"] or "") for each in found for end in ("lower", "upper")} - {""}
    resolved = f"; {remedy(sources)}" if sources else ""
    return Contradictions(
        asked={key: problem for key, problem in asked.items() if key in ids},
        blocks=[Heading(text="Contradictions"), of_conflicts(found, asked)],
        incomplete=[f"{counted(len(found), 'contradiction')} between methods{resolved}."],
    )


def contradictions_about(store: Store, names: Collection[str]) -> Contradictions:
    """Return the contradictions about all stored problems with these names."""
    found = [each for each in conflicts(store) if each["problem"] in names]
    ids = {each["problem_id"] for each in found}
    asked = {
        answer.row["problem_id"]: find_problem(name).from_fields(answer.fields)
        for name in {str(each["problem"]) for each in found}
        for answer in stored(store, find_problem(name), ids)
    }
    return contradictions_of(found, asked)
