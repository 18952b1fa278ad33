"""Pictures of answers about the epsilon of a training run, as `privsweep plot` draws them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flows.answers.held import answered
from flows.answers.parse import SAMPLING
from flows.answers.training.along import SamplerCurve, axis_of, sampling_of, told, varied
from flows.spec.words import DEFAULT_STORE
from privcore import DomainError, Problem
from privsweep.words import opened_store

RUNS = {*SAMPLING.values(), "run-epsilon"}


def by_sampler(problems: Iterable[Problem]) -> dict[str, Problem]:
    """Return problems by the word of their sampler.

    Raises:
        DomainError: A problem is not about epsilon of a training run.
    """
    found = {}
    for problem in problems:
        if problem.name not in RUNS:
            raise DomainError(
                f"Expected an answer about epsilon of a training run for a plot, got {problem.name}."
            )
        found[sampling_of(problem)] = problem
    return found


def drawn(
    found: Mapping[str, Problem],
    file: str | Path | None,
    *,
    over: str | None,
    tradeoff: bool,
    profile: bool,
    width: str,
    dark: bool,
) -> Any:
    """Draw answers, into a file or as a figure of matplotlib.

    Args:
        found: Problems about epsilon, by sampler.
        file: The file, or None.
        over: Parameter and values, as in `privsweep plot`.
        tradeoff: Whether to draw the trade-off curve.
        profile: Whether to draw the privacy profile.
        width: `column` or `text`.
        dark: Whether the ground is dark.

    Raises:
        DomainError: An argument contradicts another one, or is outside its domain.
        MissingPackageError: matplotlib is not installed.
    """
    from flows.figures.samplers import checked_picture, over_picture, tradeoff_picture

    if sum((over is not None, tradeoff, profile)) > 1:
        raise DomainError("Expected one of over, tradeoff and profile.")
    checked_picture(Path(file or "plot.svg"), width)
    fields = _shared(found)
    look: dict[str, Any] = {"width": width, "ground": "dark" if dark else "light"}
    if tradeoff:
        return written(tradeoff_picture(found, fields, **look), file)
    axis, values = ("", []) if profile else axis_of(over or "sigma", fields)
    with opened_store(DEFAULT_STORE) as opened:
        asked = varied(found, axis or "delta")
        picture, _ = over_picture(
            asked, axis, values, lambda problem, _: answered(opened, problem), fields, **look
        )
    return written(picture, file)


def drawn_ends(
    problems: Sequence[Problem],
    ends: tuple[Sequence[float], Sequence[float]],
    axis: tuple[str, Sequence[Any]],
    file: str | Path | None,
) -> Any:
    """Draw the ends of several answers over the argument in which they differ.

    Args:
        problems: The problems.
        ends: Lower and upper ends.
        axis: Name of the argument, and its values.
        file: The file, or None for a figure of matplotlib.

    Raises:
        DomainError: As in `drawn`.
        MissingPackageError: matplotlib is not installed.
    """
    from flows.figures.draw import sketch
    from flows.figures.samplers import checked_picture, epsilon_panel

    checked_picture(Path(file or "plot.svg"), user="A plot of enclosures")
    name, places = axis
    order = sorted(range(len(problems)), key=lambda k: places[k])
    (sampling, *others) = {sampling_of(problem) for problem in problems}
    relations = {str(problem.as_fields()["adjacency"]) for problem in problems}
    curve = SamplerCurve(
        sampling="" if others else sampling,
        adjacency=", ".join(sorted(relations)),
        x=tuple(float(places[k]) for k in order),
        ends=(tuple(ends[0][k] for k in order), tuple(ends[1][k] for k in order)),
    )
    fields = _shared(dict(enumerate(problems)))
    return written(sketch(epsilon_panel([curve], name, "light"), told(fields, name, relations)), file)


def _shared(found: Mapping[Any, Problem]) -> dict[str, Any]:
    """Return the fields that have the same value in all problems."""
    first, *others = (problem.as_fields() for problem in found.values())
    return {name: value for name, value in first.items() if all(each.get(name) == value for each in others)}


def written(picture: Any, file: str | Path | None) -> Any:
    """Write a figure of matplotlib into a file, or return it for a notebook."""
    from flows.figures.draw import save
    from flows.figures.samplers import write_picture

    if file is not None:
        return write_picture(picture, Path(file))
    picture._repr_svg_ = lambda: save(picture, "svg").decode()
    return picture
