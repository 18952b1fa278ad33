"""A training run of n examples in batches of b: its phases, and both roundings of its steps."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from flows.answers.ask import Asked
from flows.answers.parse import SAMPLING, ZEROED, kind_of, training_question, with_sizes
from flows.answers.sourced import asked_until_tight
from flows.printing import as_json, exactly, listed, rounded_down, rounded_up, say, show
from flows.spec.depth import parsed
from privcore import DomainError, PrivsweepError, Problem
from privcore.errors import unknown
from privcore.params import DELTA
from privcore.training import PHASES, Phase, TrainingRun, phase_named, written


def phases_of(problem: Problem) -> tuple[Phase, ...]:
    """Return the phases of the run that a problem about epsilon asks about.

    Without sampling, only the steps that use the example count.
    """
    if run := getattr(problem, "run", None):
        return tuple(run())
    sampling = next(word for word, name in SAMPLING.items() if name == problem.name)
    fields = problem.as_fields()
    known = {name: value for name, value in fields.items() if name in PHASES[sampling].parameters}
    if known.get("redraw") == "one-epoch":  # a single epoch has no order to keep
        known["redraw"] = "each-epoch"
    if sampling == "none":
        known = {"sigma": fields["sigma"], "steps": fields["participations"], "epochs": fields["epochs"]}
    return (phase_named(sampling, known),)


def adjacency_of(problem: Problem) -> str:
    """Return the neighbouring relation of a problem about epsilon, in the words of a run of phases.

    For shuffling, remove and add are directions of zero-out.
    """
    return relation_of(type(problem), str(problem.as_fields()["adjacency"]))


def relation_of(kind: type[Problem], word: str) -> str:
    """Return the same for a kind of problem and the word of its neighbouring relation."""
    return ZEROED.get(word, word) if kind.name == SAMPLING["shuffling"] else word


def one_phase(
    sampling: str | None, options: Mapping[str, str | None], *, examples: str | None, batch_size: str | None
) -> tuple[str, str, list[str]]:
    """Return the text of a run of one phase, its adjacency, and notes about it, one sentence each.

    The words mean the same as in `privsweep epsilon`.

    Args:
        sampling: Scheme that chooses the examples of a step.
        options: Text of every field of its problem that has an option; None if it was not given.
        examples: Size of the training set; with a batch size, it gives the number of steps.
        batch_size: Examples in a batch.

    Raises:
        PrivsweepError: Options contradict one another or do not belong to this sampling.
    """
    kind, given, notes = training_question(sampling, options, examples=examples, batch_size=batch_size)
    problem = kind.asked({**given, "delta": DELTA.typical[0]})
    return written(phases_of(problem)), adjacency_of(problem), notes


KEYS = ("adjacency", "delta", "examples", "phase")
LARGEST_FILE = 10**6
"""Largest size of a file in bytes."""


def run_question(text: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the problem about a run: phases, adjacency and delta.

    Args:
        text: Path of a TOML file, or the phases themselves, such as `none(sigma=1,steps=10)`.
        options: Values of `adjacency`, `delta` and `examples` from the command line, which replace those of
            the file; None if they were not given.

    Raises:
        PrivsweepError: The file cannot be read, a key is unknown or missing, or a phase is impossible.
    """
    given = {name: value for name, value in options.items() if value is not None}
    content = {"phases": text} if "(" in text else _content(Path(text))
    fields = {**content, **given}
    if "adjacency" not in fields:
        raise DomainError(
            "Expected adjacency (add-remove, zero-out or replace-one), in the file of the run or as "
            "--adjacency."
        )
    size = fields.pop("examples", None)
    if "phase" in fields:
        listed = enumerate(fields.pop("phase"), 1)
        fields["phases"] = "; ".join(_phase(number, phase, size) for number, phase in listed)
    return fields


def refuse_options(options: Iterable[str]) -> None:
    """Raise `DomainError` if an option was given that belongs to the phases of a run."""
    for name in options:
        if name not in ("adjacency", "delta", "examples"):
            option = name.replace("_", "-")
            raise DomainError(f"Expected {name} in the phases of the run, got --{option} with --run.")


def _content(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file, whose phases are a list of tables."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
        if len(raw) > LARGEST_FILE:
            raise DomainError(f"Expected a file of at most {LARGEST_FILE} bytes, got {path}.")
        content = parsed(raw)
    except OSError as error:
        raise DomainError(f"Cannot read the run {path}: {error.strerror or error}.") from None
    except UnicodeError:
        raise DomainError(f"Expected TOML in UTF-8, but {path} is not UTF-8.") from None
    except ValueError as error:
        raise DomainError(f"Cannot read the run {path}: {str(error)[:120].rstrip('.')}.") from None
    for name in content:
        if name not in KEYS:
            raise unknown("key of a run", name, list(KEYS))
    phases = content.get("phase")
    if not isinstance(phases, list) or not phases or not all(isinstance(each, dict) for each in phases):
        raise DomainError(f"Expected at least one table [[phase]] in {path}.")
    return content


def _phase(number: int, phase: Mapping[str, Any], size: Any) -> str:
    """Return the text of a phase; examples and a batch size determine the steps of an epoch and the rate.

    Args:
        number: Number of the phase, from 1, for messages.
        phase: Its keys.
        size: Size of the data set, if the file states it for all phases.
    """
    fields = dict(phase)
    sampling = fields.pop("sampling", None)
    if not isinstance(sampling, str):
        raise DomainError(f'Expected the sampling of phase {number}, such as sampling = "poisson".')
    try:
        if sampling not in PHASES:
            raise unknown("sampling", sampling, list(PHASES))
        parameters = PHASES[sampling].parameters
        batch, size = fields.pop("batch_size", None), fields.pop("examples", size)
        fields, _ = with_sizes(sampling, parameters, fields, size=size, batch=batch)
        return written((phase_named(sampling, fields),))
    except PrivsweepError as error:
        raise type(error)(f"Phase {number}: {error}") from None


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


def print_roundings(run: TrainingRun, asked: Sequence[Asked], json: bool) -> None:
    """Print both roundings of both schemes in one table, and the reasons for the safe rounding.

    Args:
        run: The training run.
        asked: Brackets of epsilon, one for each rounding; or an empty list.
        json: Whether to print JSON.
    """
    roundings = run.all_roundings()
    if json:
        rows = [asdict(rounding) for rounding in roundings]
        for row, one in zip(rows, asked, strict=False):
            row["epsilon"] = one.as_content()
        safe = {rounding.sampling: rounding.way for rounding in roundings if rounding.safe}
        quotient = run.examples / run.batch_size
        say(as_json({**asdict(run), "quotient": quotient, "safe": safe, "why": WHY, "roundings": rows}))
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
