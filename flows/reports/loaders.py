"""Picture of one training run under eight data loaders, for README.md and the documentation.

`python -m flows.reports.loaders STORE FOLDER` draws the sweep `loaders` of a store as two SVG files, for
light and for dark grounds. Texts stay texts, in the fonts of the reader's system.
"""

import math
import re
import sys
from pathlib import Path
from typing import Any

from flows.answers.ask import UncoveredError
from flows.answers.parse import DROP_LAST
from flows.answers.question import adjacency_of, typed
from flows.answers.sourced import Sourced, from_store
from flows.answers.training.compare import SchemeRow, problems, rows
from flows.answers.training.compare_output import brief
from flows.answers.training.palette import GROUNDS, NAMES, shades
from flows.printing import say
from flows.reports.charts import altair, svg
from privcore import Bracket, Problem
from storage import Store, open_store
from storage.place.disk import write_atomically

RUN = {"adjacency": "zero-out", "sigma": "1.1", "delta": "1e-5", "epochs": "10"}
SIZES = {"examples": "60000", "batch_size": "256"}
TITLE = "Same code, same noise. Only the data loader differs."
SUBTITLE = (
    "60,000 examples, batches of 256, 10 epochs, noise multiplier 1.1, δ = 10⁻⁵. "
    "Each bar is proved: the true ε lies inside it."
)
CODE = {
    "allocation": "one random step in each epoch",
    "poisson": "Opacus poisson_sampling=True",
    "shuffling": "DataLoader(shuffle=True)",
    DROP_LAST: "shuffle=True, drop_last=True",
    "balls-in-bins": "one random step for all epochs",
    "fixed-size": "256 different examples a step",
    "with-replacement": "256 draws, with repetitions",
    "none": "DataLoader(shuffle=False)",
}
"""Loaders in the words of users' code."""

FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
TICKS = (1, 2, 5, 10, 20)
LEAST, MOST = 0.7, 22.0
WIDTH, STEP, BAR = 440, 38, 14
"""Pixels of the axis, of a row, and of the height of a bar."""
NARROW = 4.0
"""Least pixels of a bar."""


def edges(bracket: Bracket) -> tuple[float, float]:
    """Return both ends of a bar, moved apart if it would be too narrow to see."""
    room = math.exp(0.5 * NARROW / WIDTH * math.log(MOST / LEAST))
    middle = math.sqrt(bracket.lower * bracket.upper)
    return min(bracket.lower, middle / room), max(bracket.upper, middle * room)


def bars(store: Store) -> list[SchemeRow]:
    """Return the stored brackets of the sweep `loaders`, the smallest upper end first.

    Raises:
        UncoveredError: The store lacks one of them.
    """

    def stored(problem: Problem) -> Sourced:
        found = store.lookup(problem)
        if found is None or not found.exact:
            raise UncoveredError(
                f"The store {store.name} has no bracket for {problem.name}; first run "
                f"`privsweep run loaders --store {store.name}`."
            )
        return from_store(problem, found)

    asked, _ = problems(typed({**RUN, **SIZES}))
    return sorted(rows(asked, stored), key=lambda bar: (bar.ends.upper, bar.ends.lower))


def picture(shown: list[SchemeRow], ground: str) -> bytes:
    """Return the picture as SVG.

    Args:
        shown: The brackets, from above to below.
        ground: `light` or `dark`.
    """
    alt, look = altair(), GROUNDS[ground]
    drawn = [
        {
            "row": k,
            "name": NAMES[bar.sampling],
            "code": CODE[bar.sampling],
            "said": brief(bar.ends.lower, bar.ends.upper),
            "low": edges(bar.ends)[0],
            "high": edges(bar.ends)[1],
            "color": shades(ground)[bar.sampling],
        }
        for k, bar in enumerate(shown)
    ]
    scale = alt.Scale(type="log", domain=[LEAST, MOST], nice=False)
    axis = alt.Axis(values=list(TICKS), format="~g", title=None, domain=False, ticks=False)
    down = alt.Y("row:Q", scale=alt.Scale(domain=[len(drawn) - 0.5, -0.5], nice=False), axis=None)
    base = alt.Chart(alt.Data(values=drawn)).encode(y=down)
    place = alt.X("low:Q", scale=scale, axis=axis)
    beyond = alt.X("high:Q", scale=scale)
    accountant = next(bar.ends for bar in shown if bar.sampling == "poisson")
    line = alt.Chart(alt.Data(values=[{"at": accountant.upper}])).encode(x=alt.X("at:Q", scale=scale))
    said = f"a Poisson accountant prints about {accountant.upper:.2g} for all eight loaders"
    layers = [
        line.mark_rule(strokeDash=[3, 3], color=look["text"], strokeWidth=1),
        line.mark_text(align="left", dx=7, fontSize=12.5, color=look["text"], text=said).encode(
            y=alt.value(-8)
        ),
        base.mark_bar(height=BAR, cornerRadius=2).encode(
            x=place, x2="high:Q", color=alt.Color("color:N", scale=None)
        ),
        base.mark_text(align="left", dx=8, fontSize=13, color=look["text"]).encode(x=beyond, text="said:N"),
        base.mark_text(align="right", dx=-14, dy=-7, fontSize=14, fontWeight=600, color=look["text"]).encode(
            x=alt.value(0), text="name:N"
        ),
        base.mark_text(align="right", dx=-14, dy=8, fontSize=11.5, color=look["dim"]).encode(
            x=alt.value(0), text="code:N"
        ),
        line.mark_text(align="left", fontSize=12, color=look["dim"], text="ε, log scale").encode(
            x=alt.value(WIDTH + 8), y=alt.value(STEP * len(drawn) + 10)
        ),
        line.mark_text(align="left", fontSize=11.5, color=look["dim"], text=_relation(shown)).encode(
            x=alt.value(0), y=alt.value(STEP * len(drawn) + 38)
        ),
    ]
    title = alt.TitleParams(
        text=TITLE, subtitle=SUBTITLE, anchor="start", frame="bounds", offset=28, subtitlePadding=8
    )
    chart = alt.layer(*layers).properties(width=WIDTH, height=STEP * len(drawn), title=title)
    padding = {"left": 40, "right": 24, "top": 22, "bottom": 20}  # more on the left: fonts may be wider
    return _tidy(
        svg(chart.to_dict() | {"config": _config(look), "background": look["ground"], "padding": padding})
    )


def _relation(shown: list[SchemeRow]) -> str:
    """Return the neighbouring relation in a sentence."""
    (relation,) = {adjacency_of(bar.problem) for bar in shown if bar.problem}
    return f"Neighbouring relation: {relation}, the gradient of one example becomes 0."


def _tidy(drawn: bytes) -> bytes:
    """Return a picture with its font named once, and with hundredths of pixels."""
    text = drawn.decode().replace(f' font-family="{FONT}"', "")
    text = re.sub(r'="[^"]*"', lambda value: re.sub(r"(\.\d\d)\d+", r"\1", value[0]), text)
    return text.replace("<svg ", f'<svg font-family="{FONT}" ', 1).encode() + b"\n"


def _config(look: dict[str, str]) -> dict[str, Any]:
    """Return fonts and colours of a picture."""
    return {
        "font": FONT,
        "title": {
            "fontSize": 21,
            "fontWeight": 700,
            "color": look["text"],
            "subtitleFontSize": 13.5,
            "subtitleColor": look["dim"],
        },
        "axis": {
            "gridColor": look["grid"],
            "labelColor": look["dim"],
            "labelFontSize": 12,
        },
        "view": {"stroke": None},
        "mark": {"aria": False},
    }


def main() -> None:
    """Draw the sweep of a store."""
    source, folder = map(Path, sys.argv[1:])
    with open_store(source) as store:
        shown = bars(store)
    for ground in GROUNDS:
        path = folder / f"loaders-{ground}.svg"
        write_atomically(path, picture(shown, ground))
        say(path)


if __name__ == "__main__":
    main()
