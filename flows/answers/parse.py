"""Problems from text: the words of a command line, and lines of JSON."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from flows.answers.ask import LIMIT_BYTES, LIMIT_SECONDS, ask
from flows.answers.samplers import checked, completed, kind_of, problem_of, with_sizes
from flows.printing import exactly
from flows.spec.words import SYNONYMS, number
from privcore import DomainError, Method, PrivsweepError, Problem, find_problem
from privcore.params import EXAMPLES
from privcore.training import from_sizes

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
    fields = {key: value for key, value in content.items() if key != "problem"}
    return from_sizes(find_problem(name), fields)


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
    except UnicodeError:
        raise DomainError("Expected one JSON object per line, got bytes that are not UTF-8.") from None
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


def training_question(
    sampling: str | None,
    options: Mapping[str, str | None],
    *,
    examples: str | None = None,
    batch_size: str | None = None,
) -> tuple[type[Problem], dict[str, Any], list[str]]:
    """Build the problem about a training run from options of the command line.

    Args:
        sampling: One of `SAMPLING`; None if it was not given.
        options: Text of every field of the problem that has an option; None if it was not given.
        examples: Size of the training set; with a batch size, it gives the number of steps.
        batch_size: Examples in a batch.

    Returns:
        The kind of problem, its fields, and notes for people, one sentence each.

    Raises:
        PrivsweepError: Options contradict one another or do not belong to this sampling.
    """
    sampling = checked(sampling)
    kind = problem_of(sampling)
    fields = {name: number(text) for name, text in options.items() if text is not None}
    for name in fields:
        if name not in kind.parameters:
            raise DomainError(
                f"Expected no {name} with sampling {sampling}: {kind.name} does not have this field."
            )
    if (word := fields.get("adjacency")) in SYNONYMS:
        fields["adjacency"] = SYNONYMS[str(word)]
    kind, fields = kind_of(sampling, fields)
    size = None if examples is None else int(EXAMPLES.check(number(examples)))
    batch = None if batch_size is None else number(batch_size)
    fields, notes = with_sizes(sampling, kind.parameters, fields, size=size, batch=batch)
    return kind, completed(sampling, fields), notes + large_delta(fields.get("delta"), size)


def large_delta(delta: object, examples: int | None) -> list[str]:
    """Return a note about a delta that is not below 1 / examples, or an empty list."""
    if examples is None or not isinstance(delta, float) or not 1.0 / examples <= delta < 1.0:
        return []
    told = f"delta={exactly(delta)} is not below 1/examples={1.0 / examples:.3g}"
    return [f"{told}: a mechanism that publishes one example in full may satisfy it."]
