"""One training run under the schemes that choose the examples of a step, side by side.

Shuffling has a second row if every epoch may leave out examples.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from flows.answers.ask import CONFLICT, contradiction
from flows.answers.parse import DROP_LAST, ZEROED, problem_of
from flows.answers.question import adjacency_of, phases_of, question
from flows.answers.sourced import Sourced
from flows.printing import exactly
from privcore import Bracket, DomainError, Problem, find_problem
from privcore.training import TrainingRun

SHUFFLING = "shuffling-epsilon"
SIZED = "shuffling-keep-last"
"""Shuffled batches of a known size without `drop_last`."""
ZERO_OUT = (
    "The neighbouring relation of this row is {}: one data set has the gradient 0 in the place of the "
    "example, since add-remove would change {}."
)
WHY_ZERO_OUT = {
    "fixed-size": "the sampling probability",
    "with-replacement": "the sampling probability",
    "shuffling": "the number of batches",
}
SHUFFLED_ADJACENCY = {"add-remove": "zero-out"}
"""Relations of the other rows, and of shuffling; remove and add are the directions of both."""
UNAMPLIFIED = "The upper end is that of no amplification: no better one is known at this noise."
UNSIZED = (
    "The upper end is that of no amplification; compare with --examples and --batch-size has a smaller one."
)
KEPT_BINS = "Every example is in the same step of all epochs; drawn again in each epoch, this is allocation."
LEAVES_OUT = "Every epoch leaves out the examples that do not fill a batch, the share {} of all."
DISPLACES = (
    "If an example is removed, another one takes its place, so a sum changes by up to two clipping norms."
)
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

    @property
    def ends(self) -> Bracket:
        """Both ends, of a row that has them."""
        assert self.bracket is not None
        return self.bracket


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


def problems(words: Mapping[str, Any]) -> tuple[dict[str, Problem], list[str]]:
    """Return the problems about the privacy of one run, by sampling, and notes to print.

    Poisson sampling uses the same number of examples per step on average: at rate k b / n, rounded up, in
    n / b steps, rounded up. If only the steps are known, the rate is k / steps.

    Args:
        words: As in `question`: those about one sampler are refused.

    Raises:
        PrivsweepError: Options contradict one another, are missing, or are outside their domains.
    """
    kind, fields, notes = question({**words, "sampling": "allocation"})
    allocation = kind.from_fields(fields)
    fields = allocation.as_fields()
    rest = {name: fields[name] for name in ("sigma", "delta", "adjacency")}
    if "examples" in words and "batch_size" in words:
        sizes = {name: words[name] for name in ("examples", "batch_size")}
        run = TrainingRun.checked(sizes | {name: fields[name] for name in ("epochs", "participations")})
        poisson = run.fields(run.safe("poisson"))
        drawn, left_out = sizes | {"batch_size": run.participations * run.batch_size}, run.left_out
    else:
        rate = float(fields["participations"]) / float(fields["steps"])
        poisson = {"steps": fields["steps"], "epochs": fields["epochs"], "sampling_probability": rate}
        drawn, left_out = {}, 0
    none = problem_of("none")
    found = {
        "allocation": allocation,
        "poisson": problem_of("poisson").from_fields(rest | poisson),
        "none": none.from_fields({name: value for name, value in fields.items() if name in none.parameters}),
    }
    adjacency = str(fields["adjacency"])
    fixed = {"adjacency": ZEROED.get(adjacency, adjacency)}
    found["fixed-size"] = problem_of("fixed-size").from_fields(rest | poisson | fixed)
    if drawn:
        counts = {name: poisson[name] for name in ("steps", "epochs")}
        with suppress(DomainError):  # more examples than this problem has
            found["with-replacement"] = problem_of("with-replacement").from_fields(
                rest | counts | drawn | fixed
            )
    if fields["epochs"] != 1:
        names = ("steps", "epochs", "participations")
        bins = {name: fields[name] for name in names} | {"redraw": "once"}
        found["balls-in-bins"] = problem_of("balls-in-bins").from_fields(rest | bins)
    if fields["participations"] == 1:
        relation = {"adjacency": SHUFFLED_ADJACENCY.get(adjacency, adjacency)}
        redraw = "one-epoch" if fields["epochs"] == 1 else "each-epoch"
        shuffled = rest | {"epochs": fields["epochs"], "redraw": redraw} | relation
        found["shuffling"] = find_problem(SHUFFLING).from_fields(shuffled | {"steps": fields["steps"]})
        if drawn:
            sized = shuffled | drawn | {"sampling": "shuffling", "redraw": "each-epoch"}
            if relation["adjacency"] in ("zero-out", "replace-one"):
                with suppress(DomainError):  # larger batches than this problem has
                    found[SIZED] = question(sized | {"keep_last": True}).problem
            if left_out:
                found[DROP_LAST] = question(sized | rest | {"drop_last": True}).problem
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
    allocation = answering(asked["allocation"])
    yield _row("allocation", asked["allocation"], allocation, *_unamplified(allocation, none))
    yield _row("poisson", asked["poisson"], answering(asked["poisson"]))
    for name in ("fixed-size", "with-replacement"):
        if name in asked:
            yield _row(name, asked[name], answering(asked[name]), *_own_relation(asked, name))
    if "balls-in-bins" in asked:
        kept = answering(asked["balls-in-bins"])
        yield _row("balls-in-bins", asked["balls-in-bins"], kept, KEPT_BINS, *_unamplified(kept, none))
    yield _shuffling(asked, none, answering)
    if DROP_LAST in asked:
        yield _row(DROP_LAST, asked[DROP_LAST], answering(asked[DROP_LAST]), *_leaving_out(asked[DROP_LAST]))
    yield _row("none", asked["none"], none)


def _shuffling(asked: Mapping[str, Problem], none: Sourced | None, answering: Answering) -> SchemeRow:
    """Return the row of shuffling, which has its own neighbouring relation, by the sizes if these gain."""
    problem = asked.get("shuffling")
    if problem is None:
        why = ONCE.format(asked["none"].as_fields()["participations"])
        return SchemeRow(sampling="shuffling", problem=None, status="not_applicable", notes=(why,))
    own = _own_relation(asked, "shuffling")
    answer = answering(problem)
    if SIZED in asked:
        sized = answering(asked[SIZED])
        unsized = answer.bracket.upper if answer and answer.ok else math.inf
        if sized and sized.ok and sized.bracket.upper < unsized:
            return _row("shuffling", asked[SIZED], sized, *own)
    note = UNAMPLIFIED if SIZED in asked else UNSIZED
    return _row("shuffling", problem, answer, *own, *_unamplified(answer, none, note))


def _leaving_out(problem: Problem) -> list[str]:
    """Return notes about shuffling whose epochs leave out examples."""
    (phase,), relation = phases_of(problem), adjacency_of(problem)
    notes = [LEAVES_OUT.format(exactly(phase.as_fields()["dropped"]))]
    return [*notes, DISPLACES] if relation in ("add-remove", "remove", "add") else notes


def _unamplified(answer: Sourced | None, none: Sourced | None, note: str = UNAMPLIFIED) -> list[str]:
    """Return a note if an answer is not better than that without amplification, unless a table gave that."""
    if answer is None or none is None or not (answer.ok and none.ok) or none.bracket.tables:
        return []
    return [note] if answer.bracket.upper >= none.bracket.upper else []


def _own_relation(asked: Mapping[str, Problem], sampling: str) -> list[str]:
    """Return a note about the neighbouring relation of a row if it is not that of the others."""
    own, usual = (adjacency_of(asked[name]) for name in (sampling, "allocation"))
    return [] if usual in ("zero-out", "replace-one") else [ZERO_OUT.format(own, WHY_ZERO_OUT[sampling])]
