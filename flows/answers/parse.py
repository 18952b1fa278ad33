"""Problems from words: samplers, neighbouring relations, the words of a command line, and lines of JSON."""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from flows.answers.ask import LIMIT_BYTES, LIMIT_SECONDS, ask
from flows.printing import exactly
from flows.spec.words import SYNONYMS, number
from privcore import DomainError, Method, PrivsweepError, Problem, find_problem
from privcore.errors import ChoiceError
from privcore.params import EXAMPLES
from privcore.stored_names import SAMPLERS
from privcore.training import MORE_STEPS, TrainingRun, from_sizes, with_steps

LOADERS = {word: sampler.code for word, sampler in SAMPLERS.items()}
"""Samplers by the words of `--sampling`, each with code that has it; docs/training-runs.md has more."""

UNKNOWN = "unknown"
"""Word of `--sampling` for all samplers that `privsweep compare` lists."""


def loader(sampling: str) -> str:
    """Return a sampler with the code of a loader that has it."""
    return f"{sampling}: {LOADERS[sampling]}"


def sampling_error(sampling: object) -> ChoiceError:
    """Return the error about a missing or unknown sampler, with a line for each sampler.

    Args:
        sampling: The word that was given, or None.
    """
    what = f"--sampling with one of these words, got {str(sampling)[:50]!r}"
    if sampling is None:
        what = "--sampling, since the answer depends on the loader"
    lines = LOADERS | {UNKNOWN: "worst of all that `privsweep compare` lists"}
    return ChoiceError(
        f"Expected {what}:",
        [f"{word:<17}  {code}" for word, code in lines.items()],
    )


SAMPLING = {word: f"{sampler.family or word}-epsilon" for word, sampler in SAMPLERS.items()}
"""Schemes that choose the examples of a step, each with the problem about its privacy."""

ZEROED = {"add-remove": "zero-out", "remove": "zero-out-remove", "add": "zero-out-add"}
"""Relations of one example more or less, each with that of a gradient set to zero."""

KEPT = (
    "Expected --redraw once or each-epoch with sampling {} and several epochs: steps that are drawn once and "
    "kept reveal more than steps that are drawn in each epoch."
)
RELATION = "Expected --adjacency with sampling {}: {}."
NO_USUAL = "add-remove, zero-out or replace-one; the answers differ much, and there is no usual choice"


def checked(sampling: str | None) -> str:
    """Return the word of a scheme.

    Raises:
        ChoiceError: The word is missing or unknown.
    """
    if sampling not in SAMPLING:
        raise sampling_error(sampling)
    return sampling


def problem_of(sampling: str) -> type[Problem]:
    """Return the kind of problem about epsilon of a scheme.

    Raises:
        ChoiceError: As `checked`.
    """
    return find_problem(SAMPLING[checked(sampling)])


def kind_of(sampling: str, fields: Mapping[str, Any]) -> tuple[type[Problem], dict[str, Any]]:
    """Return the kind of problem about epsilon that answers for a scheme and its fields, and its fields.

    Random allocation with replaced examples is asked as balls-in-bins sampling that is drawn for each epoch,
    which is the same sampling.

    Args:
        sampling: One of `SAMPLING`.
        fields: Fields of the problem that were given.

    Raises:
        DomainError: The scheme is unknown.
    """
    if sampling == "allocation" and fields.get("adjacency") == "replace-one":
        return problem_of("balls-in-bins"), {**fields, "redraw": "each-epoch"}
    return problem_of(sampling), dict(fields)


def completed(sampling: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields, completed by values that a scheme implies.

    A single epoch has no order to keep, and for balls-in-bins sampling add-remove equals zero-out. Everything
    else that changes the answer must be given.

    Args:
        sampling: One of `SAMPLING`.
        fields: Fields of the problem that were given.

    Raises:
        DomainError: The neighbouring relation or the redraw is missing, and the answer depends on it.
    """
    kind, found = problem_of(sampling), dict(fields)
    if "redraw" in kind.parameters and "redraw" not in found:
        if found.get("epochs", 1) != 1:
            raise DomainError(KEPT.format(sampling))
        if sampling == "balls-in-bins":
            found["redraw"] = "each-epoch"
    if "adjacency" not in found and ("adjacency" not in kind.defaults() or "adjacency" in kind.stated):
        if sampling != "balls-in-bins":
            raise DomainError(RELATION.format(sampling, kind.stated.get("adjacency", NO_USUAL)))
        found["adjacency"] = "add-remove"
    return found


def with_sizes(
    sampling: str, parameters: Collection[str], fields: Mapping[str, Any], *, size: object, batch: object
) -> tuple[dict[str, Any], list[str]]:
    """Return the fields with those that examples and batch size determine, and notes about them.

    Args:
        sampling: One of `SAMPLING`.
        parameters: Names of all fields of the problem, or of the phase.
        fields: Fields that were given.
        size: Number of examples; None if unknown.
        batch: Examples in a batch; None if unknown.

    Raises:
        DomainError: Fields contradict one another.
    """
    sizes = {name: each for name, each in (("examples", size), ("batch_size", batch)) if each is not None}
    if batch is None and "examples" not in parameters:
        sizes = {}
    found = with_steps(sampling, parameters, {**fields, **sizes})
    if batch is None or "steps" in fields:
        return found, []
    numbers = {name: fields[name] for name in ("epochs", "participations") if name in fields}
    return found, _notes(TrainingRun.checked(sizes | numbers), sampling)


def _notes(run: TrainingRun, sampling: str) -> list[str]:
    """Return notes about the number of steps, one sentence each.

    Args:
        run: The training run.
        sampling: The sampler, or `none`, for which the number of steps does not matter.
    """
    taken, *rest = sorted(run.roundings(sampling), key=lambda rounding: not rounding.safe)
    told = [f"steps={taken.steps}: examples / batch_size, nothing to round."]
    if rest:
        why = f"{'more' if sampling in MORE_STEPS else 'fewer'} steps give a larger epsilon"
        if sampling == "none":
            why = "steps that do not use an example do not matter"
        told[0] = (
            f"steps={taken.steps}: examples / batch_size = {run.quotient}, rounded {taken.way}, "
            f"since {why}; rounding {rest[0].way} gives steps={rest[0].steps}."
        )
    if run.participations > 1:
        told.append(
            f"batch_size={run.batch_size} counts one participation: with participations="
            f"{run.participations} a step uses {taken.mean_batch:.6g} examples on average."
        )
    return told


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
