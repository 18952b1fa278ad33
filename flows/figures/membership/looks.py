"""What the curves of these figures are called and look like, the same in every figure."""

from collections.abc import Sequence
from dataclasses import dataclass

from flows.figures.panels import Trace

Place = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Look:
    """Name, colour, marker and line style of a curve."""

    label: str
    color: str
    marker: str = ""
    style: str = "-"

    def trace(self, places: Sequence[Place], band: Sequence[Place] = ()) -> tuple[Trace, ...]:
        """Return the curve through places, by rising x; nothing where there are none.

        Args:
            places: Coordinates, in any order.
            band: Lower and upper end at each of them; nothing where there are none.
        """
        if not places:
            return ()
        order = sorted(range(len(places)), key=lambda i: places[i])
        x, y = zip(*(places[i] for i in order), strict=True)
        ends = tuple(zip(*(band[i] for i in order), strict=True)) if band else ()
        return (
            Trace(
                label=self.label, color=self.color, x=x, y=y, band=ends, marker=self.marker, style=self.style
            ),
        )


BLACK, BLUE, GREEN, ORANGE, PINK, GREY = "#000000", "#0072B2", "#009E73", "#E69F00", "#CC79A7", "#777777"
