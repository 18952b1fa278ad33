"""Pictures of a training run under one or several samplers, at the width of a column of a journal."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scipy import special

from flows.answers.export import target_of
from flows.answers.question import run_of
from flows.answers.training.along import DELTAS, Answering, Asking, SamplerCurve, curves, told
from flows.answers.training.palette import NAMES, shades
from flows.figures.draw import FORMATS, WIDTHS, save, sketch
from flows.figures.panels import Panel, Trace
from privcore import DomainError, Problem
from privcore.extras import require
from privcore.training import RunProfile, run_profile
from storage.place.disk import write_atomically

GREEK = {"epsilon": "ε", "sigma": "σ", "delta": "δ"}
WORDS = {
    "sigma": "noise multiplier σ",
    "steps": "steps of an epoch",
    "sampling_probability": "sampling probability",
    "batch_size": "batch size",
    "largest_batch": "largest batch",
}


def epsilon_panel(curves: Sequence[SamplerCurve], axis: str, ground: str) -> Panel:
    """Return the picture of epsilon over a parameter.

    Args:
        curves: Brackets of each sampler.
        axis: The parameter.
        ground: `light` or `dark`.
    """
    return Panel(
        x_label=WORDS.get(axis, GREEK.get(axis, axis)),
        y_label="ε",
        traces=tuple(_trace(curve, curves, ground) for curve in curves),
        scales=("log", "log"),
    )


def profile_panel(curves: Sequence[SamplerCurve], ground: str) -> Panel:
    """Return the privacy profile, delta over epsilon, from epsilon at several deltas.

    Args:
        curves: Brackets of each sampler over delta.
        ground: `light` or `dark`.
    """
    return Panel(
        x_label="ε",
        y_label="δ",
        traces=tuple(_trace(curve, curves, ground) for curve in curves),
        scales=("linear", "log"),
        sideways=True,
    )


def tradeoff_panel(profiles: Mapping[str, RunProfile], ground: str) -> Panel:
    """Return the trade-off curve: the largest true positive rate of a membership test at each false one.

    Args:
        profiles: Profile of each sampler, by its word.
        ground: `light` or `dark`.
    """
    curves = [
        SamplerCurve(
            sampling=sampling,
            adjacency=profile.adjacency,
            x=tuple(profile.rates),
            ends=(tuple(profile.powers[0]), tuple(profile.powers[1])),
        )
        for sampling, profile in profiles.items()
    ]
    rates = curves[0].x
    traces = [_trace(curve, curves, ground) for curve in curves]
    if [*profiles] != ["none"] and len(profiles) == 1:
        (profile,) = profiles.values()
        traces.append(
            Trace(
                label=NAMES["none"],
                color=shades(ground)["none"],
                x=rates,
                y=tuple(float(special.ndtr(special.ndtri(rate) + profile.unamplified)) for rate in rates),
                style="--",
            )
        )
    return Panel(
        x_label="false positive rate",
        y_label="true positive rate",
        traces=tuple(traces),
        scales=("log", "log"),
        x_limits=(rates[0], 1.0),
        y_limits=(rates[0], 1.0),
        diagonal=True,
    )


def _trace(curve: SamplerCurve, curves: Sequence[SamplerCurve], ground: str) -> Trace:
    """Return a curve; its label has the neighbouring relation if this is not that of all curves."""
    own = len({each.adjacency for each in curves}) > 1
    name = NAMES.get(curve.sampling, "this run")
    return Trace(
        label=f"{name}\n({curve.adjacency})" if own else name,
        color=shades(ground).get(curve.sampling, shades(ground)["allocation"]),
        x=curve.x,
        y=curve.ends[1],
        band=curve.ends,
    )


def over_picture(
    asked: Asking,
    axis: str,
    values: Sequence[Any],
    answering: Answering,
    fields: Mapping[str, Any],
    *,
    width: str = "column",
    ground: str = "light",
) -> tuple[Any, list[str]]:
    """Return the picture of epsilon over a parameter, and notes.

    Args:
        asked: As in `curves`.
        axis: As in `curves`; "" for the privacy profile.
        values: As in `curves`; those of delta in the privacy profile.
        answering: As in `curves`.
        fields: Parameters of the run, for the sentence above.
        width: A word of `WIDTHS`.
        ground: `light` or `dark`.

    Raises:
        PrivsweepError: As in `curves`.
    """
    name = axis or "delta"
    found, notes = curves(asked, name, values if axis else DELTAS, answering)
    panel = epsilon_panel(found, axis, ground) if axis else profile_panel(found, ground)
    title = told(fields, name, {curve.adjacency for curve in found})
    return sketch(panel, title, width, ground), notes


def tradeoff_picture(
    found: Mapping[str, Problem],
    fields: Mapping[str, Any],
    *,
    width: str = "column",
    ground: str = "light",
    profiling: Callable[[str, Callable[[], RunProfile]], RunProfile] = lambda _, computing: computing(),
) -> Any:
    """Return the picture of the trade-off curve.

    Args:
        found: Problems about epsilon of the run, by sampler.
        fields: Parameters of the run, for the sentence above.
        width: A word of `WIDTHS`.
        ground: `light` or `dark`.
        profiling: Function that computes the profile of a sampler.

    Raises:
        PrivsweepError: As in `run_profile`.
    """
    runs = {sampling: run_of(problem) for sampling, problem in found.items()}
    profiles = {
        sampling: profiling(sampling, lambda run=run: run_profile(**run, numbers={}))  # type: ignore[misc]
        for sampling, run in runs.items()
    }
    title = told(fields, "", {profile.adjacency for profile in profiles.values()})
    return sketch(tradeoff_panel(profiles, ground), title, width, ground)


def checked_picture(path: Path, width: str = "column", user: str = "A plot") -> Path:
    """Return the file of a picture, with links resolved.

    Args:
        path: The file.
        width: A word of `WIDTHS`.
        user: The command or function, as the subject of a sentence.

    Raises:
        DomainError: The suffix is not that of a picture, or the width is unknown, or no file can be written
            there.
        MissingPackageError: matplotlib is not installed.
    """
    if path.suffix.lower().removeprefix(".") not in FORMATS:
        raise DomainError(f"Expected a picture in a file .{', .'.join(FORMATS)}, got {path.name}.")
    if width not in WIDTHS:
        raise DomainError(f"Expected a width in {{{', '.join(WIDTHS)}}}, got {width}.")
    require("matplotlib", user)
    return target_of(path)


def write_picture(drawn: Any, path: Path) -> None:
    """Write a picture into a file.

    Args:
        drawn: The picture.
        path: The file; it is replaced.

    Raises:
        DomainError: As in `checked_picture`.
    """
    target = checked_picture(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, save(drawn, path.suffix.lower().removeprefix(".")))
