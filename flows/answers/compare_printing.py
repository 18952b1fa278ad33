"""How the comparison of samplings is told: one table, then what each row assumes."""

from collections.abc import Callable, Sequence
from typing import Any

from flows.answers.compare import Row, explanation
from flows.answers.explain import SAMPLING, Explanation, labelled, question_of
from flows.answers.show import kind_of, methods_text
from flows.answers.sourced import Sourced
from flows.printing import as_json, listed, rounded_down, rounded_up, show


def print_rows(found: Sequence[Row], json: bool, explained: Callable[[Sourced], Explanation] | None) -> None:
    """Print one table with a row a sampling, and what each row assumes.

    Args:
        found: The rows.
        json: Whether to print JSON.
        explained: Finds out what stands behind an answer; None where that is not asked for.
    """
    reasons = {row.sampling: explanation(row, explained) for row in found} if explained else {}
    if json:
        told = [_content(row) for row in found]
        for content in told if explained else []:
            reason = reasons[content["sampling"]]
            content["explanation"] = reason and reason.as_content()
        print(as_json({"rows": told}))
        return
    fields = found[0].problem.as_fields() if found[0].problem else {}
    title = f"epsilon at {listed({name: fields[name] for name in ('sigma', 'delta')})}"
    names = ["sampling", "epsilon lower", "epsilon upper", "adjacency", "kind", "method", "source"]
    show(names, [_cells(row) for row in found], title=title)
    print()
    for row in found:
        print(labelled(row.sampling, "\n\n".join([*_question(row), *row.notes])))
    for sampling, reason in reasons.items():
        if reason is not None:
            print(f"\n{sampling}", end="")
            reason.show()


def _cells(row: Row) -> list[str]:
    ends, problem = row.ends, row.problem
    if ends is None or problem is None:
        reason = {"not_applicable": "does not apply", "missing": "not stored"}.get(row.status, row.status)
        return [row.sampling, "", "", "", reason, "", ""]
    return [
        row.sampling,
        rounded_down(ends.lower),
        rounded_up(ends.upper),
        str(problem.as_fields()["adjacency"]),
        kind_of(problem, ends),
        methods_text(ends.below.lower_by, ends.above.upper_by),
        ends.told,
    ]


def _question(row: Row) -> list[str]:
    """Return what is asked, in fields and words; nothing where the run has no such case."""
    if row.problem is None:
        return []
    fields = row.problem.as_fields()
    shown = listed({name: fields[name] for name in SAMPLING if name in fields})
    return [f"{shown}: {question_of(type(row.problem))}"]


def _content(row: Row) -> dict[str, Any]:
    """Return what JSON says about a row; keys without an answer are null."""
    ends, problem = row.ends, row.problem
    below, above = (ends.below, ends.above) if ends else (None, None)
    fields = problem and problem.as_fields()
    return {
        "sampling": row.sampling,
        "problem": problem and problem.name,
        "fields": fields,
        "assumes": problem and question_of(type(problem)),
        "lower": ends and ends.lower,
        "upper": ends and ends.upper,
        "confidence": ends and ends.confidence,
        "status": row.status,
        "adjacency": fields and fields["adjacency"],
        "kind": kind_of(problem, ends) if ends and problem else None,
        "lower_method": (below.lower_by or None) if below else None,
        "upper_method": (above.upper_by or None) if above else None,
        "method": methods_text(below.lower_by, above.upper_by) if below and above else None,
        "source": ", ".join(dict.fromkeys([below.source, above.source])) if below and above else None,
        "lower_source": below and below.source,
        "upper_source": above and above.source,
        "notes": list(row.notes),
    }
