"""Words of training runs: samplers, neighbouring relations, and sizes of batches."""

from collections.abc import Collection, Mapping
from typing import Any

from flows.printing import counted, exactly
from privcore import DomainError, Problem, find_problem
from privcore.errors import ChoiceError
from privcore.stored_names import SAMPLERS
from privcore.training import MORE_STEPS, TrainingRun, with_steps

LOADERS = {word: sampler.code for word, sampler in SAMPLERS.items()}
"""Samplers by the words of `--sampling`, each with code that has it; docs/training-runs.md has more."""

DROP_LAST = "shuffling-drop-last"
"""Row of a comparison: shuffling whose epochs leave out the examples that do not fill a batch."""

UNKNOWN = "unknown"
"""Word of `--sampling` for all samplers that `privsweep compare` lists."""


def loader(sampling: str) -> str:
    """Return a sampler with the code of a loader that has it."""
    return f"{sampling}: {LOADERS.get(sampling, 'DataLoader(shuffle=True, drop_last=True)')}"


def sampling_error(sampling: object) -> ChoiceError:
    """Return the error about a missing or unknown sampler, with a line for each sampler.

    Args:
        sampling: The word that was given, or None.
    """
    what = f"--sampling with one of these words, got {str(sampling)[:50]!r}"
    if sampling is None:
        what = "--sampling, since the answer depends on the loader"
    lines = LOADERS | {UNKNOWN: "worst of all that `privsweep compare` lists"}
    if sampling == UNKNOWN:
        what, lines = f"a known sampler for this question, got --sampling {UNKNOWN}", LOADERS
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
DROPS_NOTHING = "drop_last drops nothing, since batch_size divides examples"
LESS = "; with one example less, every epoch would leave out {}, and a smaller epsilon would be proved"
KEEPS_LAST = (
    "The last batch is kept{}; drop_last would leave out {} of every epoch, and a smaller epsilon would be "
    "proved."
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
    sampling: str,
    parameters: Collection[str],
    fields: Mapping[str, Any],
    *,
    size: object,
    batch: object,
    last: Collection[str] = (),
) -> tuple[dict[str, Any], list[str]]:
    """Return the fields with those that examples and batch size determine, and notes about them.

    Args:
        sampling: One of `SAMPLING`.
        parameters: Names of all fields of the problem, or of the phase.
        fields: Fields that were given.
        size: Number of examples; None if unknown.
        batch: Examples in a batch; None if unknown.
        last: `drop_last` if the last batch of an epoch is dropped unless it is full, `keep_last` if it is
            kept, or nothing, which keeps it.

    Raises:
        DomainError: Fields contradict one another.
    """
    sizes = {name: each for name, each in (("examples", size), ("batch_size", batch)) if each is not None}
    if batch is None and "examples" not in parameters:
        sizes = {}
    dropped = "drop_last" in last
    stated = {"drop_last": dropped} if last else {}
    found = with_steps(sampling, parameters, {**fields, **sizes, **stated})
    if batch is None or "steps" in fields:
        return found, []
    numbers = {name: fields[name] for name in ("epochs", "participations") if name in fields}
    run = TrainingRun.checked(sizes | numbers)
    if dropped and run.left_out:
        return found, [_left_out(run, sampling, found)]
    notes = _notes(run, sampling)
    if sampling == "shuffling" and run.left_out and run.examples >= 2 * run.batch_size:
        notes.append(KEEPS_LAST.format("" if last else ", which is safe", counted(run.left_out, "example")))
    elif sampling == "shuffling" and dropped:
        less = LESS.format(counted(run.batch_size - 1, "example")) if drops_with_one_less(run) else ""
        notes.append(f"{DROPS_NOTHING}{less}.")
    return found, notes


def drops_with_one_less(run: TrainingRun) -> bool:
    """Return whether drop_last drops nothing, but with one example less leaves out some."""
    return not run.left_out and 1 < run.batch_size < run.examples // 2


def _left_out(run: TrainingRun, sampling: str, fields: Mapping[str, Any]) -> str:
    """Return the note about a run without the last batch of an epoch, which is not full."""
    told = f"steps={fields['steps']}: drop_last leaves out {counted(run.left_out, 'example')} of an epoch"
    if sampling == "poisson":
        rate = exactly(fields["sampling_probability"])
        return f"{told}; sampling_probability={rate} is one over the steps, as in Opacus."
    if sampling == "shuffling" or sampling in MORE_STEPS:
        return f"{told}."
    return f"{told}; the ends are those of an example that is used."


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
