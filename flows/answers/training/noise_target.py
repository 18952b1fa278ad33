"""The least noise for a target, an epsilon, an advantage or a true positive rate, and its text."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from flows.answers.ask import LIMIT_SECONDS
from flows.answers.explain import explained_run
from flows.answers.parse import UNKNOWN, loader
from flows.answers.question import question, run_of, typed
from flows.answers.show import methods_text
from flows.answers.sourced import asked_until_tight
from flows.answers.training.any_sampler import candidates
from flows.answers.training.noise import (
    PRECISION,
    RATE,
    TARGET,
    Noise,
    NoiseForAny,
    confirmed,
    find_noise,
    find_noise_any,
    sigma_of,
)
from flows.printing import as_json, exactly, listed, rounded_down, rounded_up, say
from privcore import Bracket, DomainError, Method, Problem, find_problem
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
    if name != "epsilon" and words.get("repeats") is not None:
        raise DomainError(
            f"Expected --epsilon with --repeats: no theorem here bounds the {name} of the best run."
        )
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


def print_noise(found: Noise, json: bool, *, explain: bool) -> None:
    """Print a noise multiplier that suffices, its proof, and a smaller noise multiplier that does not.

    Args:
        found: Result of the search.
        json: Whether to print JSON.
        explain: Whether to explain both.
    """
    enough, short = found.enough, found.short
    reasons = {"suffices": explained_run(enough, ("upper",))} if explain else {}
    if explain and short is not None:
        reasons["does not suffice"] = explained_run(short, ("lower",))
    if json:
        told = {name.replace(" ", "_"): reason.as_content() for name, reason in reasons.items()}
        say(as_json(found.as_content() | ({"explanation": told} if explain else {})))
        return
    rest = {name: value for name, value in enough.problem.as_fields().items() if name != "sigma"}
    asks = enough.problem.asks.replace("_", " ")
    say(f"sigma {exactly(found.sigma)} suffices: {asks} is at most {rounded_up(enough.upper)}")
    if (least := found.least) is not None:
        high, only = rounded_up(least.upper), "suffices by narrower brackets only"
        say(f"sigma {exactly(sigma_of(least))} {only}: {asks} is at most {high}")
    if short is None:
        say("less noise: nothing is proved about it")
    else:
        low = rounded_down(short.lower)
        say(f"sigma {exactly(found.short_sigma)} does not: {asks} is at least {low}")
    if isinstance(found, NoiseForAny):
        say(f"worst      {loader(found.worst)}")
        for relation in dict.fromkeys(found.relations.values()):
            names = ", ".join(name for name, each in found.relations.items() if each == relation)
            say(f"holds for  {names} ({relation})")
    say(f"problem    {enough.problem.name} {listed(rest)}")
    by = Bracket(lower_by=short.lower_by if short else "", upper_by=enough.upper_by)
    say(f"methods    {methods_text(by)}")
    say(f"source     computed now, from {found.brackets} brackets of {asks}")
    for name, reason in reasons.items():
        sigma = found.sigma if name == "suffices" else found.short_sigma
        say(f"\nwhy sigma {exactly(sigma)} {name}", end="")
        reason.show(question=name == "suffices")
