"""Comparison of bags of labels with randomized response of equal advantage, from stored answers."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from flows.answers.ask import UncoveredError
from flows.printing import exactly
from flows.reports.comparison import Entry, lacking, methods_of, side_by_side
from flows.reports.document import Block, Document, Heading, Paragraph
from flows.reports.stored import StoredAnswer, brackets, check_exists, provenance, source, stored
from flows.reports.summary import summary_of_bags
from flows.reports.tables import contradictions_about
from privcore import Bracket, find_problem
from privcore.answer import attributed, tables_of
from storage import Store
from storage.schema import origin_text
from storage.sql.views import remedy

NAME = "compare-labels"
ADVANTAGE, QUANTILE = "label-advantage", "label-ratio-quantile"
_ADDITIVE = "additive advantage"

Response = list[tuple[float, Bracket]]
"""Epsilons, each with the bracket of the advantage of randomized response at it."""


def compare_labels(store: Store) -> Document:
    """Return the comparison of bags of labels with randomized response at equal advantage.

    Args:
        store: Opened with `missing_ok`.

    Raises:
        UncoveredError: Bags or randomized response are not stored.
        StoreError: The store cannot be read.
    """
    check_exists(store)
    rows = [row for name in (ADVANTAGE, QUANTILE) for row in stored(store, find_problem(name))]
    contradicted = contradictions_about(store, (ADVANTAGE, QUANTILE))
    agreed = [row for row in rows if row.row["problem_id"] not in contradicted.asked]
    proved = list(brackets(store, find_problem(ADVANTAGE)))
    responses = _responses(proved)
    falling = {prior: sentence for prior, known in responses.items() if (sentence := _falling(prior, known))}
    sound = {prior: known for prior, known in responses.items() if prior not in falling}
    entries = [*_additive(proved, agreed, sound), *_multiplicative(agreed)]
    absent = list(_absent(rows))
    shown = list(side_by_side(NAME, "equal epsilon", entries, ("bag_size",), least=1))
    if not shown and not contradicted.blocks and not falling:
        raise UncoveredError(
            " ".join(absent or ["The store has no bags and randomized response at equal priors."])
        )
    used = [row for row in rows if row.ok and row.fields["mechanism"] in ("rr", "llp")]
    blocks: list[Block] = [
        Heading(text="Bags of labels compared with randomized response of equal advantage", level=1),
        *summary_of_bags(find_problem(ADVANTAGE), entries),
        Heading(text="Question"),
        Paragraph(
            text="For each bag size, the epsilon at which randomized response has the same advantage: by "
            "this measure, releasing the sum of a bag protects labels as well as randomized response "
            "at that epsilon. Additive advantages are compared with the stored advantages of "
            "randomized response, so the ends of a bracket are stored epsilons. The multiplicative "
            "advantage of randomized response is its epsilon for every prior; that of bags is the "
            "quantile at the given level, so a share of the bags exceeds it."
        ),
        *(Paragraph(text=sentence) for sentence in absent),
        Heading(text="Equal epsilon"),
        *shown,
        methods_of(entries),
        *([Heading(text="Contradictions of randomized response")] if falling else []),
        *(Paragraph(text=sentence) for sentence in falling.values()),
        *contradicted.blocks,
        *provenance(used, degraded=store.degraded),
    ]
    return Document(
        name=NAME,
        blocks=blocks,
        incomplete=[*absent, *falling.values(), *contradicted.incomplete],
        source=source(used),
    )


def _responses(proved: Sequence[tuple[Mapping[str, Any], Bracket]]) -> dict[str, Response]:
    """Return the advantages of randomized response by prior, in the order of epsilon."""
    found: dict[str, Response] = {}
    for row, bracket in proved:
        if row["mechanism"] == "rr":
            found.setdefault(row["prior"], []).append((row["label_epsilon"], bracket))
    return {prior: sorted(response, key=lambda each: each[0]) for prior, response in found.items()}


def _falling(prior: str, response: Response) -> str:
    """Return the sentence about an advantage that falls as epsilon grows, which is impossible, or ""."""
    for (low, least), (high, most) in combinations(response, 2):
        if least.lower > most.upper:
            one = f"at least {exactly(least.lower)} ({least.lower_by}{origin_text(least.tables, ', ')})"
            other = f"at most {exactly(most.upper)} ({most.upper_by}{origin_text(most.tables, ', ')})"
            return (
                f"At prior={exactly(prior)}, the advantage of randomized response is {one} at epsilon "
                f"{exactly(low)}, but {other} at epsilon {exactly(high)}, although it grows with epsilon; "
                f"{remedy(tables_of(least, most))}."
            )
    return ""


def _absent(rows: Sequence[StoredAnswer]) -> Iterator[str]:
    """Yield a sentence for each part of the comparison that the store lacks."""
    parts = ((ADVANTAGE, "rr"), (ADVANTAGE, "llp"), (QUANTILE, "llp"))
    for name, mechanism in parts:
        if not any(row.problem == name and row.ok and row.fields["mechanism"] == mechanism for row in rows):
            yield lacking(
                f"answers to {name} with mechanism={mechanism}",
                lambda problem, values, name=name, mechanism=mechanism: (  # type: ignore[misc]
                    problem == name and mechanism in values.get("mechanism", set())
                ),
            )


def _additive(
    proved: Sequence[tuple[Mapping[str, Any], Bracket]],
    rows: Sequence[StoredAnswer],
    responses: Mapping[str, Response],
) -> Iterator[Entry]:
    """Yield the equal epsilons of bags with proved brackets, then of simulated bags."""
    for row, bracket in proved:
        if row["mechanism"] == "llp" and row["prior"] in responses:
            yield Entry(
                scheme=_ADDITIVE,
                fields={"prior": row["prior"], "bag_size": row["bag_size"]},
                bracket=_equal(responses[row["prior"]], bracket),
            )
    for answer in rows:
        fields, row = answer.fields, answer.row
        doubtful = answer.ok and row["confidence"] < 1.0 and answer.problem == ADVANTAGE
        if doubtful and fields["mechanism"] == "llp" and (response := responses.get(str(fields["prior"]))):
            yield Entry(
                scheme=f"{_ADDITIVE}, simulated",
                fields={"prior": fields["prior"], "bag_size": fields["bag_size"]},
                bracket=_equal(response, answer.bracket),
            )


def _equal(response: Response, bracket: Bracket) -> Bracket:
    """Return the bracket, between stored epsilons, at which randomized response has the advantage `bracket`.

    The advantage of randomized response is proved to grow with epsilon. So an epsilon at which its upper end
    is at most the lower end of `bracket` is a lower end, and an epsilon at which its lower end is at least
    the upper end of `bracket` is an upper end.
    """
    least = max((epsilon for epsilon, known in response if known.upper <= bracket.lower), default=0.0)
    most = min((epsilon for epsilon, known in response if known.lower >= bracket.upper), default=math.inf)
    ends = [known for epsilon, known in response if epsilon in (least, most)]
    by = attributed(bracket.lower_by, *tables_of(bracket, *ends))
    return replace(bracket, lower=least, upper=most, lower_by=by)


def _multiplicative(rows: Sequence[StoredAnswer]) -> Iterator[Entry]:
    """Yield the quantiles of the ratio; each equals the epsilon of the equal randomized response."""
    for answer in rows:
        fields, row = answer.fields, answer.row
        if answer.problem == QUANTILE and answer.ok and fields["mechanism"] == "llp":
            yield Entry(
                scheme=f"quantile {exactly(fields['level'])} of the multiplicative advantage",
                fields={"prior": fields["prior"], "bag_size": fields["bag_size"]},
                bracket=answer.bracket,
                value=row["value"],
            )
