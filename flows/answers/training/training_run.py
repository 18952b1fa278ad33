"""Both roundings of the steps of a training run of n examples in batches of b."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from flows.answers.ask import Asked
from flows.answers.parse import drops_with_one_less, kind_of
from flows.answers.question import large_delta, question, typed
from flows.answers.sourced import Sourced, asked_until_tight
from flows.printing import as_json, counted, exactly, listed, rounded_down, rounded_up, say, show
from privcore import Problem
from privcore.training import TrainingRun

WHY = {
    "allocation": (
        "with fewer steps, an example is easier to find, so an upper bound of epsilon for the smaller number "
        "of steps holds for both"
    ),
    "poisson": (
        "every further step reveals more, so an upper bound of epsilon for the larger number of steps, at "
        "the same sampling probability, holds for both"
    ),
}
"""Reasons why a rounding is safe: with more steps, epsilon falls for allocation, and grows for Poisson."""


def epsilons(run: TrainingRun, noise: Mapping[str, Any], limit_seconds: float) -> list[Asked]:
    """Return brackets of epsilon for every rounding of a run, in the order of `all_roundings`.

    Args:
        run: The training run.
        noise: The fields sigma and delta, and adjacency if it is not the default.
        limit_seconds: As in `ask`.

    Raises:
        DomainError: Sigma or delta is missing, or outside its domain.
    """
    kinds = [
        kind_of(rounding.sampling, run.fields(rounding) | dict(noise)) for rounding in run.all_roundings()
    ]
    problems = [kind.from_fields(fields) for kind, fields in kinds]
    return [asked_until_tight(problem, limit_seconds=limit_seconds) for problem in problems]


def roundings_of(
    words: Mapping[str, object], *, limit_seconds: float
) -> tuple[TrainingRun, Callable[[], list[Asked]], list[str]]:
    """Return a run, the function that brackets its epsilons if there is noise, and notes.

    Args:
        words: As in `question`.
        limit_seconds: As in `ask`.

    Raises:
        DomainError: A word is missing, or outside its domain.
    """
    given = typed(words)
    run = TrainingRun.checked(given)
    noise: dict[str, Any] = {name: given[name] for name in ("sigma", "delta", "adjacency") if name in given}
    computing = partial(epsilons, run, noise, limit_seconds) if noise else list[Asked]
    return run, computing, large_delta(noise.get("delta"), run.examples)


def with_one_less(words: Mapping[str, Any], computing: Callable[[Problem], Sourced]) -> list[str]:
    """Return a note about epsilon with one example less, if drop_last only then leaves out examples.

    Args:
        words: As in `question`, which has read them.
        computing: Function that answers a problem.
    """
    if "drop_last" not in words or words.get("sampling") != "shuffling" or words.get("group", 1) != 1:
        return []
    run = TrainingRun.checked({name: words[name] for name in ("examples", "batch_size")})
    if not drops_with_one_less(run):
        return []
    less = run.examples - 1
    answer = computing(question({**words, "examples": less}).problem)
    ends = f"[{rounded_down(answer.bracket.lower)}, {rounded_up(answer.bracket.upper)}]"
    return [f"With examples={less}, epsilon is in {ends}."] if answer.ok else []


def contents_of(run: TrainingRun, asked: Sequence[Asked]) -> dict[str, Any]:
    """Return both roundings of both schemes for JSON; arguments are as in `print_roundings`."""
    roundings = run.all_roundings()
    rows = [asdict(rounding) for rounding in roundings]
    for row, one in zip(rows, asked, strict=False):
        row["epsilon"] = one.as_content()
    safe = {rounding.sampling: rounding.way for rounding in roundings if rounding.safe}
    quotient = run.examples / run.batch_size
    return {
        **asdict(run),
        "left_out": run.left_out,
        "quotient": quotient,
        "safe": safe,
        "why": WHY,
        "roundings": rows,
    }


def print_roundings(run: TrainingRun, asked: Sequence[Asked], json: bool) -> None:
    """Print both roundings of both schemes in one table, and the reasons for the safe rounding.

    Args:
        run: The training run.
        asked: Brackets of epsilon, one for each rounding; or an empty list.
        json: Whether to print JSON.
    """
    roundings = run.all_roundings()
    if json:
        say(as_json(contents_of(run, asked)))
        return
    names = ["sampling", "round", "steps", "total", "probability", "mean batch", "safe"]
    lines = [
        [
            rounding.sampling,
            rounding.way,
            str(rounding.steps),
            str(rounding.total_steps),
            exactly(rounding.sampling_probability),
            f"{rounding.mean_batch:.6g}",
            "yes" if rounding.safe else "no",
        ]
        for rounding in roundings
    ]
    title = f"examples / batch_size = {run.examples} / {run.batch_size} = {run.quotient} steps per epoch"
    title += f", epochs={run.epochs}, participations={run.participations}"
    if asked:
        fields = asked[0].problem.as_fields()
        title += f"\nepsilon at {listed({name: fields[name] for name in ('sigma', 'delta', 'adjacency')})}"
        names += ["epsilon lower", "epsilon upper"]
        lines = [
            [*line, *([rounded_down(one.lower), rounded_up(one.upper)] if one.ok else ["", ""])]
            for line, one in zip(lines, asked, strict=True)
        ]
    show(names, lines, title=title)
    if len(roundings) == 2:
        say("nothing to round: the batch size divides the examples")
        return
    for sampling, why in WHY.items():
        say(f"{sampling}: rounding {run.safe(sampling).way} is safe: {why}")
    left = counted(run.left_out, "example")
    say(f"shuffling: drop_last leaves out {left} of each epoch of {run.examples // run.batch_size} steps")
