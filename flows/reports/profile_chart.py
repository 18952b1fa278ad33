"""The trade-off curve of one training run as a chart with both ends: a picture, or an HTML report."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from scipy import special

from flows.answers.export import target_of
from flows.figures.draw import FORMATS, canvas, draw
from flows.figures.figure import Figure, Picture
from flows.figures.panels import BLUE, GREY, ORANGE, Panel, Trace
from flows.printing import listed, rounded_down, rounded_up
from flows.reports.document import Document, Heading, Paragraph, TextTable
from flows.reports.files import html
from flows.reports.plot import Mark, Plot
from privcore import Bracket, DomainError
from privcore.extras import require
from privcore.training import RunProfile
from storage.place.disk import write_atomically

SUFFIXES = (*FORMATS, "html")
X_NAME, Y_NAME = "false positive rate", "true positive rate"
_RUN, _REVEALED, _GUESS = "this run: between both proved ends", "without sampling", "guessing"
_LONGEST, _WIDTH = 130, 80
"""Most characters of the phases in a title, and of its lines."""


def check_chart(path: Path) -> Path:
    """Return the file of a chart, with links resolved.

    Raises:
        DomainError: The suffix is not that of a chart, or no file can be written there.
    """
    if path.suffix.lower().removeprefix(".") not in SUFFIXES:
        raise DomainError(f"Expected a chart in a file .{', .'.join(SUFFIXES)}, got {path.name}.")
    return target_of(path)


def draw_profile(profile: RunProfile, path: Path) -> None:
    """Write the chart of a profile to a file; its suffix decides about the format.

    Args:
        profile: The profile.
        path: The file; it is replaced.

    Raises:
        DomainError: As in `check_chart`.
    """
    target, kind = check_chart(path), path.suffix.lower().removeprefix(".")
    target.parent.mkdir(parents=True, exist_ok=True)
    if kind == "html":
        write_atomically(target, html(profile_report(profile)).encode())
    else:
        draw(_picture(profile), target, kind)


def draw_ends(
    name: str, places: Sequence[float], quantity: str, ends: tuple[Sequence[float], ...], path: Path | None
) -> Any:
    """Draw both ends of a quantity over a parameter.

    Args:
        name: Name of the parameter.
        places: Its values.
        quantity: Name of the quantity.
        ends: Lower and upper ends, of the same length.
        path: The file; it is replaced. None returns the figure instead.

    Raises:
        DomainError: The suffix is not that of a picture.
        MissingPackageError: matplotlib is not installed.
    """
    require("matplotlib", "A plot of enclosures")
    order = sorted(range(len(places)), key=places.__getitem__)
    x = tuple(float(places[k]) for k in order)
    lower, upper = (tuple(end[k] for k in order) for end in ends)
    traces = (
        Trace(label=f"{quantity}: between both proved ends", color=BLUE, x=x, y=upper, band=(lower, upper)),
        Trace(label="", color=BLUE, x=x, y=lower, width=0.8),
    )
    panel = Panel(x_label=name, y_label=quantity, traces=traces)
    figure = Figure(name="ends", title=quantity, panels=lambda _: ((panel,),), legend_below=True)
    picture = Picture(figure=figure, title=quantity, rows=((panel,),))
    if path is None:
        return canvas(picture)
    if (kind := path.suffix.lower().removeprefix(".")) not in FORMATS:
        raise DomainError(f"Expected a file .{', .'.join(FORMATS)}, got {path.name}.")
    return draw(picture, target_of(path), kind)


def _title(profile: RunProfile) -> str:
    phases = profile.phases.replace(",", ", ")
    if len(phases) > _LONGEST:
        phases = phases[:_LONGEST].rpartition(",")[0] + ", ..."
    return "\n".join(wrap(f"Membership tests on {phases} under {profile.adjacency}", _WIDTH))


def _revealed(profile: RunProfile) -> list[float]:
    """Return the true positive rates without sampling, for a picture."""
    return [float(special.ndtr(special.ndtri(rate) + profile.unamplified)) for rate in profile.rates]


def _picture(profile: RunProfile) -> Picture:
    rates, (lower, upper) = tuple(profile.rates), profile.powers
    traces = (
        Trace(label=_RUN, color=BLUE, x=rates, y=tuple(upper), band=(tuple(lower), tuple(upper))),
        Trace(label="", color=BLUE, x=rates, y=tuple(lower), width=0.8),
        Trace(
            label=_REVEALED,
            color=ORANGE,
            x=rates,
            y=tuple(_revealed(profile)),
            style="--",
            width=1.0,
            layer=5,
        ),
        Trace(label=_GUESS, color=GREY, x=rates, y=rates, style=":", width=1.0),
    )
    panel = Panel(
        x_label=X_NAME,
        y_label=Y_NAME,
        traces=traces,
        scales=("log", "log"),
        x_limits=(rates[0], 1.0),
        y_limits=(rates[0], 1.0),
    )
    figure = Figure(name="profile", title=_title(profile), panels=lambda _: ((panel,),), legend_below=True)
    return Picture(figure=figure, title=_title(profile), rows=((panel,),))


def profile_report(profile: RunProfile) -> Document:
    """Return a profile as a report with its table and its chart."""
    marks = [
        Mark(
            x=rate,
            series="this run",
            bracket=Bracket(lower=low, upper=high, lower_by="runs.curves", upper_by="runs.curves"),
            largest=1.0 + 1e-9,
        )
        for rate, low, high in zip(profile.rates, *profile.powers, strict=True)
    ]
    rows = [
        [line.quantity, listed(line.at), rounded_down(line.lower), rounded_up(line.upper)]
        for line in profile.lines
    ]
    mu = rounded_up(profile.unamplified)
    return Document(
        name="profile",
        blocks=[
            Heading(text="Profile of a training run", level=1),
            Paragraph(text=f"The run is `{profile.phases}`, the neighbouring relation {profile.adjacency}."),
            TextTable(title="Numbers of the run", names=["quantity", "at", "lower", "upper"], rows=rows),
            Paragraph(
                text="`mu` holds for false positive rates from the smallest rate to 1 minus this rate; over "
                f"all rates it is that of the run without sampling, {mu}."
            ),
            Plot(
                name="trade-off",
                title="Largest true positive rate of a membership test",
                x_name=X_NAME,
                y_name=Y_NAME,
                series_name="",
                marks=marks,
            ),
        ],
    )
