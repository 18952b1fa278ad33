"""Problems from text: the words of a command line, and lines of JSON."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from flows.answers.ask import LIMIT_BYTES, LIMIT_SECONDS, ask
from flows.answers.training_run import TrainingRun
from flows.printing import exactly
from flows.spec.words import number
from privcore import DomainError, Method, PrivsweepError, Problem, find_problem
from privcore.params import EXAMPLES

MISUSE = "misuse"


def answer_lines(
    lines: Iterable[bytes],
    methods: Sequence[Method] | None = None,
    *,
    limit_seconds: float = LIMIT_SECONDS,
    limit_bytes: float = LIMIT_BYTES,
) -> Iterator[dict[str, Any]]:
    """Answer problems in lines of JSON, one by one and in order; empty lines are skipped.

    Args:
        lines: Each `{"problem": "allocation-epsilon", "sigma": 1, ...}`.
        methods: As in `ask`.
        limit_seconds: As in `ask`.
        limit_bytes: As in `ask`.

    Yields:
        The content of one JSON line each; an invalid line has the status `misuse` and a reason.
    """
    for line in lines:
        if not line.strip():
            continue
        content: dict[str, Any] = {}
        try:
            content = _json_object(line)
            problem = _problem_in(content)
            asked = ask(problem, methods, limit_seconds=limit_seconds, limit_bytes=limit_bytes)
            yield asked.as_content()
        except PrivsweepError as error:
            yield _misuse(content, str(error))


def _problem_in(content: Mapping[str, Any]) -> Problem:
    if not isinstance(name := content.get("problem"), str):
        raise DomainError("Expected the name of a problem under the key problem.")
    return find_problem(name).asked({key: value for key, value in content.items() if key != "problem"})


def _json_object(line: bytes) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise DomainError(f"Expected each field once, got {twice} twice.")
        return dict(pairs)

    try:
        content = json.loads(line.decode("utf-8-sig"), object_pairs_hook=once)
    except DomainError:
        raise
    except (ValueError, RecursionError) as error:
        raise DomainError(f"Expected one JSON object per line: {error}.") from None
    if not isinstance(content, dict):
        raise DomainError(f"Expected one JSON object per line, got {type(content).__name__}.")
    return content


def _misuse(content: Mapping[str, Any], sentence: str) -> dict[str, Any]:
    fields = {key: value for key, value in content.items() if key != "problem"}
    return {
        "problem": content.get("problem"),
        "fields": {key: _echo(value) for key, value in fields.items()},
        "lower": 0.0,
        "upper": math.inf,
        "confidence": 1.0,
        "status": MISUSE,
        "methods": [],
        "detail": sentence,
    }


def _echo(value: Any) -> Any:
    """Return a rejected value as it was given; NaN, which strict JSON lacks, becomes text."""
    return "nan" if isinstance(value, float) and math.isnan(value) else value


# ---------------------------------------------------------------------- a training run as a problem

SAMPLING = {"allocation": "allocation-epsilon", "poisson": "poisson-epsilon", "none": "unamplified-epsilon"}
"""Schemes that choose the examples of a step, each with the problem about its privacy."""


def training_question(
    sampling: str,
    options: Mapping[str, str | None],
    *,
    examples: str | None = None,
    batch_size: str | None = None,
) -> tuple[type[Problem], dict[str, Any], list[str]]:
    """Build the problem about a training run from options of the command line.

    Args:
        sampling: One of `SAMPLING`.
        options: Text of every field of the problem that has an option; None if it was not given.
        examples: Size of the training set; with a batch size, it gives the number of steps.
        batch_size: Examples in a batch.

    Returns:
        The kind of problem, its fields, and notes for people, one sentence each.

    Raises:
        PrivsweepError: Options contradict one another or do not belong to this sampling.
    """
    if sampling not in SAMPLING:
        raise DomainError(f"Expected sampling in {{{', '.join(SAMPLING)}}}, got sampling={sampling!r}.")
    kind = find_problem(SAMPLING[sampling])
    fields = {name: number(text) for name, text in options.items() if text is not None}
    for name in fields:
        if name not in kind.parameters:
            raise DomainError(
                f"Expected no {name} with sampling {sampling}: {kind.name} does not have this field."
            )
    notes: list[str] = []
    size = None if examples is None else int(EXAMPLES.check(number(examples)))
    if batch_size is not None:
        notes += _add_steps(fields, size, number(batch_size), sampling)
    return kind, fields, notes + large_delta(fields.get("delta"), size)


def large_delta(delta: object, examples: int | None) -> list[str]:
    """Return a note about a delta that is not below 1 / examples, or an empty list."""
    if examples is None or not isinstance(delta, float) or not 1.0 / examples <= delta < 1.0:
        return []
    told = f"delta={exactly(delta)} is not below 1/examples={1.0 / examples:.3g}"
    return [f"{told}: a mechanism that publishes one example in full may satisfy it."]


def _add_steps(fields: dict[str, Any], size: int | None, batch: object, sampling: str) -> list[str]:
    """Add the fields that examples and batch size determine, and return notes about them."""
    if size is None:
        raise DomainError("Expected examples together with batch_size, got batch_size alone.")
    if "steps" in fields:
        raise DomainError("Expected steps or batch_size, got both.")
    if "sampling_probability" in fields:
        raise DomainError("Expected sampling_probability or batch_size, got both.")
    run = TrainingRun.checked({"examples": size, "batch_size": batch, "participations": 1} | fields)
    rounding = run.safe("poisson" if sampling == "poisson" else "allocation")
    fields["steps"] = rounding.steps
    if rounding.sampling_probability is not None:
        fields["sampling_probability"] = rounding.sampling_probability
    return run.notes(sampling)
