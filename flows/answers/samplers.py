"""Samplers of a training run, by the words of `--sampling`, and their neighbouring relations."""

from collections.abc import Collection, Mapping
from typing import Any

from flows.answers.loaders import sampling_error
from privcore import DomainError, Problem, find_problem
from privcore.training import MORE_STEPS, TrainingRun, with_steps

SAMPLING = {
    "allocation": "allocation-epsilon",
    "poisson": "poisson-epsilon",
    "shuffling": "shuffling-epsilon",
    "balls-in-bins": "balls-in-bins-epsilon",
    "fixed-size": "fixed-size-epsilon",
    "with-replacement": "with-replacement-epsilon",
    "truncated-poisson": "truncated-poisson-epsilon",
    "none": "unamplified-epsilon",
}
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
