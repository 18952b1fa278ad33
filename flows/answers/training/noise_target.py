"""The least noise of a training run for a target: an epsilon, an advantage, or a true positive rate."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from flows.answers.ask import LIMIT_SECONDS
from flows.answers.parse import UNKNOWN
from flows.answers.question import question, run_of, typed
from flows.answers.sourced import asked_until_tight
from flows.answers.training.any_sampler import candidates
from flows.answers.training.noise import (
    PRECISION,
    RATE,
    TARGET,
    Noise,
    confirmed,
    find_noise,
    find_noise_any,
)
from privcore import DomainError, Method, Problem, find_problem
from privcore.params import DELTA, SIGMA

TARGETS = ("epsilon", "advantage", "tpr")
"""Words of the numbers whose largest value may be the target; a true positive rate has a false one, `fpr`."""


def noise_for(
    words: Mapping[str, Any],
    targets: Mapping[str, object],
    *,
    precision: object = 1e-3,
    methods: Sequence[Method] | None = None,
    limit_seconds: float = LIMIT_SECONDS,
) -> tuple[Callable[[], Noise], list[str]]:
    """Return the function that searches the least noise of a run, and notes about the question.

    Args:
        words: As in `question`, or with `sampling` `unknown`; their sigma is that of the ratios of phases.
        targets: The target under one name of `TARGETS`, and `fpr`; None if not given.
        precision: As in `find_noise`.
        methods: As in `find_noise`.
        limit_seconds: As in `find_noise`.

    Raises:
        PrivsweepError: Words contradict one another, or not one target is given.
    """
    given = typed(targets)
    rate = given.pop("fpr", None)
    if len(given) != 1 or (rate is None) is ("tpr" in given):
        raise DomainError("Expected one target: --epsilon, --advantage, or --tpr with --fpr.")
    ((name, wanted),) = given.items()
    target = float((TARGET if name == "epsilon" else replace(RATE, name=name)).check(wanted))
    gap = float(PRECISION.check(typed({"precision": precision})["precision"]))
    again = partial(asked_until_tight, methods=methods, limit_seconds=limit_seconds)

    def about(problem: Problem) -> Problem:
        """Return the problem about the number of the target, for a problem about epsilon."""
        if name == "epsilon":
            return problem
        if name == "advantage":
            return find_problem("run-advantage").asked(run_of(problem))
        return find_problem("run-tpr").asked(run_of(problem) | {"false_positive_rate": rate})

    if name != "epsilon":
        words = {"delta": DELTA.typical[0], **words}  # which these numbers do not have
    words = {"sigma": 1.0, **words} if "run" not in words else words
    if words.get("sampling") == UNKNOWN and "run" not in words:
        if methods:
            raise DomainError(f"Expected no --method with --sampling {UNKNOWN}.")
        asked, notes = candidates(words)
        each = {sampler: about(problem) for sampler, problem in asked.items()}
        return partial(find_noise_any, each, target, again, precision=gap, limit_seconds=limit_seconds), notes
    found = question(words)
    problem = about(found.problem)

    def searched() -> Noise:
        least = find_noise(
            type(problem),
            problem.as_fields(),
            target,
            precision=gap,
            methods=methods,
            limit_seconds=limit_seconds,
        )
        return confirmed(least, again, precision=gap, largest=SIGMA.upper)

    return searched, found.notes


def stuck(found: Noise, precision: object) -> list[str]:
    """Return a note if the methods, and not the time, limit the precision of a result; or an empty list."""
    wanted = typed({"precision": precision})["precision"]
    if found.worst or found.least is not None or found.short is None or found.gap <= wanted:
        return []
    return ["The methods prove nothing between the two values of sigma, and more time does not help."]
