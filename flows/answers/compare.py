"""One training run under the schemes that choose the examples of a step, side by side."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flows.answers.ask import CONFLICT, contradiction
from flows.answers.catalogue import meaning_of
from flows.answers.explain import SAMPLING_FIELDS, Explanation
from flows.answers.parse import training_question
from flows.answers.samplers import problem_of
from flows.answers.show import kind_of, methods_text
from flows.answers.sourced import Sourced
from flows.printing import as_json, labelled, listed, rounded_down, rounded_up, show
from flows.spec.words import number
from privcore import Bracket, Problem, find_problem
from privcore.training import TrainingRun

SHUFFLING = "shuffling-epsilon"
ZERO_OUT = (
    "The neighbouring relation of this row is {}: one data set has the gradient 0 in the place of the "
    "example, since add-remove would change the number of batches."
)
SHUFFLED_ADJACENCY = {"add-remove": "zero-out"}
"""Relations of the other rows, and of shuffling; remove and add are the directions of both."""
UNAMPLIFIED = "The upper end is that of no amplification: no better one is known at this noise."
FIXED_ADJACENCY = {"add-remove": "zero-out", "remove": "zero-out-remove", "add": "zero-out-add"}
"""Relations of the other rows, and of batches of fixed size."""
KEPT_BINS = "Every example is in the same step of all epochs; drawn again in each epoch, this is allocation."
ONCE = "Shuffling uses every example in one step of an epoch, not in participations={}."

Answering = Callable[[Problem], Sourced | None]
"""Function that answers a problem, or returns None if nothing is stored and it must not compute."""


@dataclass(frozen=True, kw_only=True)
class SchemeRow:
    """The row of one scheme that chooses examples.

    Attributes:
        sampling: Its name, a word of `--sampling`.
        problem: The problem; None if the scheme does not apply to the run.
        answer: The answer, or None if nothing is stored.
        bracket: Both ends; None without an answer.
        status: `ok`, `not_applicable`, `missing` if nothing is stored, or the status of a failed answer.
        notes: Sentences about the row, or about the reason why it is empty.
    """

    sampling: str
    problem: Problem | None
    answer: Sourced | None = None
    bracket: Bracket | None = None
    status: str = "ok"
    notes: tuple[str, ...] = ()


def _row(sampling: str, problem: Problem, answer: Sourced | None, *notes: str) -> SchemeRow:
    """Return the row with this answer, or with the reason why it is missing."""
    row = SchemeRow(sampling=sampling, problem=problem, answer=answer, notes=notes)
    if answer is None:
        return replace(row, status="missing")
    row = replace(row, problem=answer.problem)  # the rate of Poisson sampling may be rounded in another way
    if not answer.ok:
        return replace(row, status=answer.status, notes=(*notes, answer.detail))
    if answer.bracket.crossed:
        return replace(row, status=CONFLICT, notes=(*notes, contradiction(answer.bracket)))
    return replace(row, bracket=answer.bracket)


def explanation(row: SchemeRow, explained: Callable[[Sourced], Explanation]) -> Explanation | None:
    """Return the explanation of a row, or None if it has no answer."""
    return None if row.bracket is None or row.answer is None else explained(row.answer)


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
    none = problem_of("none")
    found = {
        "allocation": allocation,
        "poisson": problem_of("poisson").from_fields(rest | poisson),
        "none": none.from_fields({name: value for name, value in fields.items() if name in none.parameters}),
    }
    adjacency = str(fields["adjacency"])
    fixed = {"adjacency": FIXED_ADJACENCY.get(adjacency, adjacency)}
    found["fixed-size"] = problem_of("fixed-size").from_fields(rest | poisson | fixed)
    if fields["epochs"] != 1:
        names = ("steps", "epochs", "participations")
        bins = {name: fields[name] for name in names} | {"redraw": "once"}
        found["balls-in-bins"] = problem_of("balls-in-bins").from_fields(rest | bins)
    if fields["participations"] == 1:
        relation = SHUFFLED_ADJACENCY.get(adjacency, adjacency)
        redraw = "one-epoch" if fields["epochs"] == 1 else "each-epoch"
        shuffled = {"epochs": fields["epochs"], "redraw": redraw, "adjacency": relation}
        found["shuffling"] = find_problem(SHUFFLING).from_fields(rest | {"steps": fields["steps"]} | shuffled)
    return found, notes


def nearest_rate(asked: Mapping[str, Problem]) -> list[Problem]:
    """Return Poisson sampling at rate k / steps, rounded to nearest, if only this rounding makes it differ.

    Stored problems and the SQL macro `compare` have this rate. The rate of `problems` is rounded up.
    """
    allocation, poisson = asked["allocation"].as_fields(), asked["poisson"].as_fields()
    rate = float(allocation["participations"]) / float(allocation["steps"])
    if allocation["steps"] != poisson["steps"] or rate == poisson["sampling_probability"]:
        return []
    return [type(asked["poisson"]).from_fields(poisson | {"sampling_probability": rate})]


def rows(asked: Mapping[str, Problem], answering: Answering) -> Iterator[SchemeRow]:
    """Yield the row of every sampling, as soon as it is known.

    Args:
        asked: The problems, from `problems`.
        answering: Function that answers a problem.
    """
    none = answering(asked["none"])
    for name in ("allocation", "poisson"):
        yield _row(name, asked[name], answering(asked[name]))
    yield _row(
        "fixed-size", asked["fixed-size"], answering(asked["fixed-size"]), *_own_relation(asked, "fixed-size")
    )
    if "balls-in-bins" in asked:
        yield _row("balls-in-bins", asked["balls-in-bins"], answering(asked["balls-in-bins"]), KEPT_BINS)
    yield _shuffling(asked, none, answering)
    yield _row("none", asked["none"], none)


def _shuffling(asked: Mapping[str, Problem], none: Sourced | None, answering: Answering) -> SchemeRow:
    """Return the row of shuffling, which has its own neighbouring relation, and often no better upper end."""
    problem = asked.get("shuffling")
    if problem is None:
        why = ONCE.format(asked["none"].as_fields()["participations"])
        return SchemeRow(sampling="shuffling", problem=None, status="not_applicable", notes=(why,))
    answer = answering(problem)
    notes = _own_relation(asked, "shuffling")
    if answer is not None and answer.ok and none is not None and none.ok:
        notes += [UNAMPLIFIED] if answer.bracket.upper >= none.bracket.upper else []
    return _row("shuffling", problem, answer, *notes)


def _own_relation(asked: Mapping[str, Problem], sampling: str) -> list[str]:
    """Return a note about the neighbouring relation of a row if it is not that of the others."""
    own, usual = (asked[name].as_fields()["adjacency"] for name in (sampling, "allocation"))
    return [] if own == usual else [ZERO_OUT.format(own)]


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
        if row.bracket is not None and row.answer is not None:
            notes.insert(1, f"source: {row.answer.told}")
        print(labelled(row.sampling, "\n\n".join(notes), indent=15))
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
        "notes": list(row.notes),
    }
