"""The trade-off curve of one training run as a chart with both ends: a picture, or an HTML report."""

from pathlib import Path

from flows.answers.export import target_of
from flows.answers.training.palette import NAMES
from flows.figures.draw import FORMATS, save, sketch
from flows.figures.samplers import tradeoff_panel
from flows.printing import listed, rounded_down, rounded_up
from flows.reports.document import Document, Heading, Paragraph, TextTable
from flows.reports.files import html
from flows.reports.plot import Mark, Plot
from privcore import Bracket, DomainError
from privcore.training import RunProfile
from storage.place.disk import write_atomically

SUFFIXES = (*FORMATS, "html")
X_NAME, Y_NAME = "false positive rate", "true positive rate"
_LONGEST = 130
"""Most characters of the phases in a title."""


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
        word = profile.phases.partition("(")[0]
        sampling = word if word in NAMES and ";" not in profile.phases else ""
        drawn = sketch(tradeoff_panel({sampling: profile}, "light"), _title(profile), "text")
        write_atomically(target, save(drawn, kind))


def _title(profile: RunProfile) -> str:
    phases = profile.phases.replace(",", ", ")
    if len(phases) > _LONGEST:
        phases = phases[:_LONGEST].rpartition(",")[0] + ", ..."
    return f"Membership tests on {phases} under {profile.adjacency}. Both ends are proved."


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
