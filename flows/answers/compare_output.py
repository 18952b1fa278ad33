"""The output of the comparison of samplers: one table with the assumptions of each row, or JSON."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from flows.answers.catalogue import meaning_of
from flows.answers.compare import SchemeRow
from flows.answers.compare_picture import NARROWEST, picture
from flows.answers.explain import SAMPLING_FIELDS, Explanation
from flows.answers.show import kind_of, methods_text
from flows.answers.sourced import Sourced
from flows.printing import as_json, labelled, listed, note, rounded_down, rounded_up, say, show
from flows.terminal.window import painted, width_of

SHOWN = (*SAMPLING_FIELDS, "examples", "batch_size")
"""Fields of a sampler that are printed next to its row."""


def print_rows(
    found: Sequence[SchemeRow],
    json: bool,
    explained: Callable[[Sourced], Explanation] | None,
    notes: Sequence[str] = (),
) -> None:
    """Print a picture on a terminal, elsewhere a table and the assumptions of each row, which --explain adds.

    Args:
        found: The rows.
        json: Whether to print JSON.
        explained: Function that explains an answer; None without explanations.
        notes: Sentences about the numbers of steps: below the picture, else on standard error.
    """
    width = width_of(sys.stdout)
    drawn = width is not None and width >= NARROWEST and not json
    if not drawn:
        note(*notes)
    if json:
        say(as_json({"rows": contents(found, explained)}))
        return
    if drawn and width is not None:
        for line in picture(found, notes, width, sys.stdout):
            say(painted(line))
        if not explained:
            return
        say()
    _print_details(found, explained)


def _print_details(found: Sequence[SchemeRow], explained: Callable[[Sourced], Explanation] | None) -> None:
    """Print a table with all digits that are printed anywhere, and paragraphs about each row."""
    reasons = {row.sampling: _explanation(row, explained) for row in found} if explained else {}
    fields = found[0].problem.as_fields() if found[0].problem else {}
    title = f"epsilon at {listed({name: fields[name] for name in ('sigma', 'delta', 'adjacency')})}"
    names = ["sampling", "epsilon lower", "epsilon upper", "kind", "method"]
    show(names, [_cells(row) for row in found], title=title)
    say()
    indent = max(len(row.sampling) for row in found) + 2
    for row in found:
        notes = list(row.notes)
        if row.problem is not None:
            fields = row.problem.as_fields()
            shown = listed({name: fields[name] for name in SHOWN if name in fields})
            notes.insert(0, f"{shown}: {meaning_of(type(row.problem))}")
        if row.bracket is not None and row.answer is not None:
            notes.insert(1, f"source: {row.answer.told}")
        say(labelled(row.sampling, "\n\n".join(notes), indent=indent))
    for sampling, reason in reasons.items():
        if reason is not None:
            say(f"\n{sampling}", end="")
            reason.show()


def contents(
    found: Sequence[SchemeRow], explained: Callable[[Sourced], Explanation] | None
) -> list[dict[str, Any]]:
    """Return the rows for JSON; the arguments are those of `print_rows`."""
    told = [_content(row) for row in found]
    if explained:
        for row, content in zip(found, told, strict=True):
            reason = _explanation(row, explained)
            content["explanation"] = reason and reason.as_content()
    return told


def _cells(row: SchemeRow) -> list[str]:
    bracket, problem = row.bracket, row.problem
    if bracket is None or problem is None:
        reason = {"not_applicable": "does not apply", "missing": "not stored"}.get(row.status, row.status)
        return [row.sampling, "", "", reason, ""]
    return [
        row.sampling,
        rounded_down(bracket.lower),
        rounded_up(bracket.upper),
        kind_of(problem, bracket),
        methods_text(bracket),
    ]


def _content(row: SchemeRow) -> dict[str, Any]:
    """Return a row for JSON; keys without an answer are null."""
    bracket, problem = row.bracket, row.problem
    source = row.answer.source if bracket and row.answer else None
    fields = problem and problem.as_fields()
    return {
        "sampling": row.sampling,
        "problem": problem and problem.name,
        "fields": fields,
        "assumes": problem and meaning_of(type(problem)),
        "lower": bracket and bracket.lower,
        "upper": bracket and bracket.upper,
        "confidence": bracket and bracket.confidence,
        "status": row.status,
        "adjacency": fields and fields["adjacency"],
        "kind": kind_of(problem, bracket) if bracket and problem else None,
        "lower_method": (bracket.lower_by or None) if bracket else None,
        "upper_method": (bracket.upper_by or None) if bracket else None,
        "method": bracket and methods_text(bracket),
        "source": source,
        "lower_source": source,
        "upper_source": source,
        **({"imported": list(bracket.imported)} if bracket and bracket.imported else {}),
        "notes": list(row.notes),
    }


def _explanation(row: SchemeRow, explained: Callable[[Sourced], Explanation]) -> Explanation | None:
    """Return the explanation of a row, or None if it has no answer."""
    return None if row.bracket is None or row.answer is None else explained(row.answer)
