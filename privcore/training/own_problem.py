"""The problem about one sampler that asks the same as a problem about a run, and its proved bracket."""

import math
from typing import Any

from privcore.answer import Answer, Bracket, Status, intersect
from privcore.method import Cost, Direction, Method
from privcore.point import Point, evaluate
from privcore.problem import Problem
from privcore.registry import TIGHT, answering, find_problem, promise
from privcore.training.batches import PoissonPhase, Public
from privcore.training.epochs import AllocationPhase, BallsInBins, ShufflingPhase
from privcore.training.phase import RELATIONS, Phase
from privcore.training.problems import TrainingProblem

ADDED = {"zero-out": "add-remove", "zero-out-remove": "remove", "zero-out-add": "add"}
"""Relations of a gradient set to zero, each with the equal one of an example more or less."""


def own_problem(problem: TrainingProblem) -> Problem | None:
    """Return the problem of the sampler of a run of one phase; None if the run has no other name.

    Balls-in-bins sampling that is drawn in each epoch is random allocation.

    Args:
        problem: A question about epsilon or delta.

    Example:
        >>> from privcore.training.problems import RunEpsilon
        >>> run = RunEpsilon(phases="none(sigma=2,steps=3)", adjacency="zero-out", delta=1e-5)
        >>> own_problem(run).as_fields()["adjacency"]
        'add-remove'
    """
    run = problem.run()
    if len(run) > 1 or problem.asks not in ("epsilon", "delta"):
        return None
    (phase,), fields = run, {problem.given: problem.at}
    adjacency = ADDED.get(problem.adjacency, problem.adjacency)
    found = _sampler(phase, problem.adjacency, adjacency)
    if found is None or phase.owned > 1:
        return None
    sampler, own = found
    kind = find_problem(f"{sampler}-{problem.asks}")
    known = {name: value for name, value in phase.as_fields().items() if name in kind.parameters}
    return kind.from_fields({**known, **fields, "adjacency": adjacency, **own})


def _sampler(phase: Phase, stated: str, adjacency: str) -> tuple[str, dict[str, Any]] | None:
    """Return the name of the sampler of a phase, and the fields that are not those of the phase."""
    if isinstance(phase, ShufflingPhase):
        if RELATIONS[stated] == "add-remove" or phase.dropped or phase.kept or phase.batch > 1:
            return None
        own = {"adjacency": "zero-out"} if adjacency == "add-remove" else {}
        return "shuffling", own | ({"redraw": "one-epoch"} if phase.epochs == 1 else {})
    if isinstance(phase, PoissonPhase):
        return "poisson", {}
    if isinstance(phase, Public):
        return "unamplified", {"participations": phase.steps}
    again = not isinstance(phase, BallsInBins) or phase.redraw == "each-epoch" or phase.epochs == 1
    if isinstance(phase, AllocationPhase) and again and adjacency != "replace-one":
        return "allocation", {}
    return None


def proved(problem: Problem) -> Answer:
    """Return the bracket of a problem that its methods prove, the most promising first, until it is tight.

    Every door computes this bracket for the problem: `flows.answers.ask` has the same order and the same end.

    Args:
        problem: A question about epsilon or delta of one sampler.
    """
    found, details, bracket = list[Bracket](), list[str](), Bracket()
    for method in _proving(problem):
        answer = evaluate(Point(problem=problem, method=method))
        if not answer.ok:
            continue
        found.append(answer.said_by(method.name))
        details.append(f"{method.name}: {answer.detail}")
        bracket = intersect(found, problem.largest)
        if bracket.upper < math.inf and bracket.upper - bracket.lower <= TIGHT * bracket.upper:
            break
    if not found:
        return Answer.without(Status.FAILED, f"No method proves a bound of {problem.name}.")
    return Answer.enclosure(bracket.lower, bracket.upper, detail="; ".join(details))


def cost_of_proofs(problem: Problem) -> Cost:
    """Return an estimate of the cost of `proved`, if all methods are used."""
    costs = [method.cost(problem) for method in _proving(problem)]
    return Cost(seconds=sum(each.seconds for each in costs), bytes=max(each.bytes for each in costs))


def _proving(problem: Problem) -> list[Method]:
    """Return the methods that prove bounds, in the order in which they are asked; no simulations."""
    methods = [method() for method in answering(type(problem))]
    proving = [
        method
        for method in methods
        if method.direction is not Direction.ESTIMATE
        and "confidence" not in method.knobs
        and method.applies(problem) is None
    ]
    return sorted(proving, key=lambda method: promise(method, problem))
