"""Comparison of the epsilon that audits refute, planned and on trainings, with the true epsilon."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from flows.answers.ask import UncoveredError
from flows.answers.sourced import from_store
from flows.reports.comparison import Entry, lacking, methods_of, side_by_side
from flows.reports.document import Block, Document, Heading, Paragraph
from flows.reports.stored import StoredAnswer, brackets, check_exists, provenance, source, stored
from flows.reports.summary import REFUTED, summary_of_audits
from flows.reports.tables import contradictions_about
from privcore import Answer, Bracket, Point, Problem, evaluate, find, find_problem
from privcore.parameter import Real, Value
from storage import Store

NAME = "compare-audits"
PLANNED, TRAINING = "audit-planned-epsilon", "audit-training"
_EXACT, _CLOSED_FORM = "unamplified-epsilon", "unamplified.exact"


def compare_audits(store: Store) -> Document:
    """Return the comparison of the epsilon that audits refute with the true or the claimed epsilon.

    Args:
        store: Opened with `missing_ok`.

    Raises:
        UncoveredError: No audit is stored.
        StoreError: The store cannot be read.
    """
    check_exists(store)
    rows = [row for name in (PLANNED, TRAINING) for row in stored(store, find_problem(name))]
    planned = list(_planned(store))
    trained = list(_trained(store, [row for row in rows if row.problem == TRAINING and row.ok]))
    contradicted = contradictions_about(store, (PLANNED, TRAINING))
    present = {row.problem for row in rows if row.ok}
    absent = [
        lacking(what, lambda problem, _, name=name: problem == name)  # type: ignore[misc]
        for what, name in (("planned audits", PLANNED), ("audited trainings", TRAINING))
        if name not in present
    ]
    if not planned and not trained and not contradicted.blocks:
        raise UncoveredError(" ".join(absent))
    blocks: list[Block] = [
        Heading(text="Epsilon refuted by audits, compared with the true epsilon", level=1),
        *summary_of_audits(
            {
                "a planned audit": (find_problem(PLANNED), planned),
                "an audit of a training": (find_problem(TRAINING), trained),
            }
        ),
        *(Paragraph(text=sentence) for sentence in absent),
    ]
    if planned:
        blocks += [
            Heading(text="Planned audits"),
            Paragraph(
                text="The largest epsilon that an audit of a Gaussian mechanism in one run can refute, if "
                "the number of correct guesses is the expected number of an optimal attacker, compared "
                "with the true epsilon of the mechanism. The true epsilon has a closed form and is "
                "computed for this report."
            ),
            *side_by_side(f"{NAME}-planned", "epsilon", planned, ("guesses", "canaries")),
            methods_of(planned),
        ]
    if trained:
        blocks += [
            Heading(text="Audited trainings"),
            Paragraph(
                text="The epsilon that audits of DP-SGD refuted, compared with the epsilon that its noise "
                "claims. A refuted epsilon above the claim reveals a bug. The claim holds only for the "
                "program without a bug; if the store lacks it, it is computed for this report."
            ),
            *side_by_side(f"{NAME}-training", "epsilon", trained, ("canaries",), least=1),
            methods_of(trained),
        ]
    used = [row for row in rows if row.ok]
    blocks += contradicted.blocks
    blocks += provenance(used, degraded=store.degraded)
    return Document(
        name=NAME, blocks=blocks, incomplete=[*absent, *contradicted.incomplete], source=source(used)
    )


# ------------------------------------------------------------------------------------ planned audits


def _planned(store: Store) -> Iterator[Entry]:
    """Yield the epsilons that planned audits can refute, then the true epsilons at the same settings."""
    names = ("canaries", "guesses", "mu", "delta", "audit_confidence")
    settings: dict[tuple[Value, ...], dict[str, Value]] = {}
    for row, bracket in brackets(store, find_problem(PLANNED)):
        fields = {name: row[name] for name in names}
        settings[tuple(fields.values())] = fields
        family = str(row["family"])
        scheme = REFUTED + ("any mechanism" if family == "approximate" else f"{family.capitalize()} family")
        yield Entry(scheme=scheme, fields=fields, bracket=bracket)
    for fields in settings.values():
        bracket = _true(float(fields["mu"]), float(fields["delta"]))
        yield Entry(scheme="true epsilon", fields=fields, bracket=bracket)


@cache
def _true(mu: float, delta: float) -> Bracket:
    """Return the epsilon of a Gaussian mechanism of noise 1 / mu, which is exactly mu-GDP."""
    known = Bracket(upper=0.0, lower_by=_CLOSED_FORM, upper_by=_CLOSED_FORM)
    if mu <= 0.0:
        return known
    domain = find_problem(_EXACT).parameters["sigma"]
    assert isinstance(domain, Real)
    # 1 / mu is rounded. If the noise exceeds its domain, the largest noise in it still gives an upper end.
    more, less = math.nextafter(1.0 / mu, math.inf), min(math.nextafter(1.0 / mu, 0.0), domain.upper)
    lower = 0.0 if more > domain.upper else _gaussian(more, delta).lower
    return replace(known, lower=lower, upper=_gaussian(less, delta).upper)


def _gaussian(sigma: float, delta: float) -> Answer:
    """Return the epsilon of Gaussian noise in closed form."""
    problem = find_problem(_EXACT).from_fields({"sigma": sigma, "delta": delta})
    return evaluate(Point(problem=problem, method=find(_CLOSED_FORM)()))


# --------------------------------------------------------------------------------- audited trainings

_CLAIM, _POISSON = "claimed", "poisson.certified"


def _trained(store: Store, rows: list[StoredAnswer]) -> Iterator[Entry]:
    """Yield the epsilons that audits of trainings refuted, then the claimed epsilon of each training."""
    names = ("canaries", "sigma", "steps", "sampling_probability", "delta", "run")
    settings: dict[tuple[Value, ...], dict[str, Value]] = {}
    for answer in rows:
        fields = {name: answer.fields[name] for name in names}
        settings[tuple(fields.values())] = fields
        bug = answer.fields["bug"]
        yield Entry(
            scheme=f"{REFUTED}{'no bug' if bug == 'none' else bug}",
            fields=fields,
            bracket=answer.bracket,
            value=answer.row["value"],
            more={name: answer.fields[name] for name in ("guesses", "audit_confidence")},
        )
    for fields in settings.values():
        asked = {name: fields[name] for name in ("sigma", "steps", "sampling_probability", "delta")}
        problem = find_problem("poisson-epsilon").from_fields(asked)
        found = store.lookup(problem)
        if found is not None and found.exact:
            yield Entry(scheme=_CLAIM, fields=fields, bracket=from_store(problem, found).bracket)
        elif (computed := _claimed(problem)) is not None:
            yield Entry(scheme=_CLAIM, fields=fields, bracket=computed)


@cache
def _claimed(problem: Problem) -> Bracket | None:
    """Return the bracket of the claimed epsilon, computed in about a second, or None if that fails."""
    answer = evaluate(Point(problem=problem, method=find(_POISSON)()))
    return answer.said_by(_POISSON) if answer.ok else None
