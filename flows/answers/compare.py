"""One training run under four schemes that choose the examples of a step, side by side."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flows.answers.ask import CONFLICT, contradiction
from flows.answers.catalogue import meaning_of
from flows.answers.explain import SAMPLING_FIELDS, Explanation
from flows.answers.parse import SAMPLING, training_question
from flows.answers.show import kind_of, methods_text
from flows.answers.sourced import COMPUTED, Sourced
from flows.answers.training_run import TrainingRun
from flows.printing import as_json, labelled, listed, rounded_down, rounded_up, show
from flows.spec.words import number
from privcore import Bracket, Problem, find_problem, intersect

SHUFFLING = "shuffling-epsilon"
FROM_BELOW = "The lower end is that of the first epoch alone; further epochs can only raise epsilon."
FROM_ABOVE = (
    "The upper end is that of no amplification: a smaller one is proved only for one epoch with batches "
    "of one example."
)
ONCE = "Shuffling uses every example in one step of an epoch, not in participations={}."

Answering = Callable[[Problem], Sourced | None]
"""Function that answers a problem, or returns None if nothing is stored and it must not compute."""


@dataclass(frozen=True, kw_only=True)
class SchemeRow:
    """The row of one scheme that chooses examples.

    Attributes:
        sampling: Its name: `allocation`, `poisson`, `shuffling` or `none`.
        problem: The problem; None if the scheme does not apply to the run.
        below: The answer that gives the lower end.
        above: The answer that gives the upper end: the same, except for some rows of shuffling.
        bracket: Both ends; None without an answer.
        status: `ok`, `not_applicable`, `missing` if nothing is stored, or the status of a failed answer.
        notes: Sentences about the row, or about the reason why it is empty.
    """

    sampling: str
    problem: Problem | None
    below: Sourced | None = None
    above: Sourced | None = None
    bracket: Bracket | None = None
    status: str = "ok"
    notes: tuple[str, ...] = ()


def _row(
    sampling: str, problem: Problem, below: Sourced | None, above: Sourced | None, *notes: str
) -> SchemeRow:
    """Return the row with these answers, or with the reason why they are missing."""
    row = SchemeRow(sampling=sampling, problem=problem, below=below, above=above, notes=notes)
    if below is None or above is None:
        return replace(row, status="missing")
    for answer in (below, above):
        if not answer.ok:
            return replace(row, status=answer.status, notes=(*notes, answer.detail))
    bracket = below.bracket
    if below is not above:
        bracket = intersect([replace(below.bracket, upper=math.inf), replace(above.bracket, lower=0.0)])
    if bracket.crossed:
        return replace(row, status=CONFLICT, notes=(*notes, contradiction(bracket)))
    return replace(row, bracket=bracket)


def explanation(row: SchemeRow, explained: Callable[[Sourced], Explanation]) -> Explanation | None:
    """Return the explanation of a row, or None if it has no answer."""
    if row.problem is None or row.bracket is None or row.below is None or row.above is None:
        return None
    below = explained(row.below)
    if row.below is row.above:
        return below
    told = {"lower": below, "upper": explained(row.above)}
    origins = [origin.only(end) for end in told for origin in told[end].origins if end in origin.ends]
    return Explanation(problem=row.problem, origins=tuple(origins))


def problems(
    options: Mapping[str, str | None], *, examples: str | None, batch_size: str | None
) -> tuple[dict[str, Problem], list[str]]:
    """Return the problems about the privacy of one run, by sampling, and notes to print.

    Poisson sampling uses the same number of examples per step on average: at rate k b / n, rounded up, in
    n / b steps, rounded up. If only the steps are known, the rate is k / steps.

    Args:
        options: Text of sigma, steps, delta, participations, epochs and adjacency; None where not given.
        examples: As in `training_question`.
        batch_size: As in `training_question`.

    Raises:
        PrivsweepError: Options contradict one another, are missing, or are outside their domains.
    """
    kind, fields, notes = training_question("allocation", options, examples=examples, batch_size=batch_size)
    allocation = kind.from_fields(fields)
    fields = allocation.as_fields()
    rest = {name: fields[name] for name in ("sigma", "delta", "adjacency")}
    if examples is not None and batch_size is not None:
        sizes = {"examples": number(examples), "batch_size": number(batch_size)}
        run = TrainingRun.checked(sizes | {name: fields[name] for name in ("epochs", "participations")})
        poisson = run.fields(run.safe("poisson"))
    else:
        rate = float(fields["participations"]) / float(fields["steps"])
        poisson = {"steps": fields["steps"], "epochs": fields["epochs"], "sampling_probability": rate}
    found = {
        "allocation": allocation,
        "poisson": find_problem(SAMPLING["poisson"]).from_fields(rest | poisson),
        "none": find_problem(SAMPLING["none"]).from_fields(fields),
    }
    if fields["participations"] == 1:
        found["shuffling"] = find_problem(SHUFFLING).from_fields(rest | {"steps": fields["steps"]})
    return found, notes


def rows(
    asked: Mapping[str, Problem], answering: Answering, *, batch_size: int | None
) -> Iterator[SchemeRow]:
    """Yield the row of every sampling, as soon as it is known.

    Args:
        asked: The problems, from `problems`.
        answering: Function that answers a problem.
        batch_size: Examples of a step, if known.
    """
    none = answering(asked["none"])
    for name in ("allocation", "poisson"):
        answer = answering(asked[name])
        yield _row(name, asked[name], answer, answer)
    yield _shuffling(asked, none, answering, batch_size)
    yield _row("none", asked["none"], none, none)


def _shuffling(
    asked: Mapping[str, Problem], none: Sourced | None, answering: Answering, batch_size: int | None
) -> SchemeRow:
    """Return the row of shuffling.

    The lower bound holds for batches of any size, with all other examples of a batch opposed or idle, and
    for more epochs, since leaving out their outputs is post-processing. The upper bound by clones needs
    batches of one example; the upper bound of no amplification has no requirements.
    """
    fields = asked["none"].as_fields()
    problem = asked.get("shuffling")
    if problem is None:
        why = ONCE.format(fields["participations"])
        return SchemeRow(sampling="shuffling", problem=None, status="not_applicable", notes=(why,))
    answer, one_epoch = answering(problem), fields["epochs"] == 1
    if one_epoch and batch_size == 1:
        return _row("shuffling", problem, answer, answer)
    notes = (FROM_ABOVE,) if one_epoch else (FROM_BELOW, FROM_ABOVE)
    return _row("shuffling", problem, answer, none, *notes)


def print_rows(
    found: Sequence[SchemeRow], json: bool, explained: Callable[[Sourced], Explanation] | None
) -> None:
    """Print one table with a row for each sampling, and the assumptions of each row.

    Args:
        found: The rows.
        json: Whether to print JSON.
        explained: Function that explains an answer; None without explanations.
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
    title = f"epsilon at {listed({name: fields[name] for name in ('sigma', 'delta', 'adjacency')})}"
    names = ["sampling", "epsilon lower", "epsilon upper", "kind", "method"]
    show(names, [_cells(row) for row in found], title=title)
    print()
    for row in found:
        notes = list(row.notes)
        if row.problem is not None:
            fields = row.problem.as_fields()
            shown = listed({name: fields[name] for name in SAMPLING_FIELDS if name in fields})
            notes.insert(0, f"{shown}: {meaning_of(type(row.problem))}")
        if row.bracket is not None:
            notes.insert(1, f"source: {_source(row.below, row.above)}")
        print(labelled(row.sampling, "\n\n".join(notes)))
    for sampling, reason in reasons.items():
        if reason is not None:
            print(f"\n{sampling}", end="")
            reason.show()


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


def _source(below: Sourced | None, above: Sourced | None) -> str:
    """Return the source of both ends in words."""
    assert below is not None
    assert above is not None
    same = below.told == above.told or below.source == above.source == COMPUTED
    return below.told if same else f"lower end {below.told}; upper end {above.told}"


def _content(row: SchemeRow) -> dict[str, Any]:
    """Return a row for JSON; keys without an answer are null."""
    bracket, problem = row.bracket, row.problem
    below, above = (row.below, row.above) if bracket else (None, None)
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
        "source": ", ".join(dict.fromkeys([below.source, above.source])) if below and above else None,
        "lower_source": below and below.source,
        "upper_source": above and above.source,
        "notes": list(row.notes),
    }
