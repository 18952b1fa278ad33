"""Contradictions between methods in a report: a table at its end, and the sentence for its exit code."""

from collections.abc import Collection, Mapping, Sequence

from flows.reports.document import Block, Heading, counted
from flows.reports.stored import conflicts, stored
from flows.reports.tables import of_conflicts
from privcore import Problem, find_problem
from storage import Store


def blocks_of(
    found: Sequence[Mapping[str, object]], asked: Mapping[str, Problem]
) -> tuple[list[Block], list[str]]:
    """Return the table of contradictions and the sentence about them; nothing if there are none.

    Args:
        found: From `conflicts`.
        asked: The problems, by their ids.
    """
    if not found:
        return [], []
    sentence = f"{counted(len(found), 'contradiction')} between methods."
    return [Heading(text="Contradictions"), of_conflicts(found, asked)], [sentence]


def blocks_about(store: Store, names: Collection[str]) -> tuple[list[Block], list[str]]:
    """Return the same for all stored problems with these names."""
    found = [each for each in conflicts(store) if each["problem"] in names]
    ids = {each["problem_id"] for each in found}
    asked = {
        answer.row["problem_id"]: find_problem(name).from_fields(answer.fields)
        for name in {str(each["problem"]) for each in found}
        for answer in stored(store, find_problem(name), ids)
    }
    return blocks_of(found, asked)
