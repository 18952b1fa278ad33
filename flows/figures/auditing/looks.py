"""What the curves of audits are called and look like, the same in every figure."""

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

    def trace(self, places: Sequence[Place]) -> tuple[Trace, ...]:
        """Return the curve through places, by rising x; nothing where there are none."""
        if not places:
            return ()
        x, y = zip(*sorted(places), strict=True)
        return (Trace(label=self.label, color=self.color, x=x, y=y, marker=self.marker, style=self.style),)


_BLUE, _GREEN = "#0072B2", "#009E73"

TRUE = Look(label="true epsilon", color="#000000", style="--")
GAUSSIAN = Look(label="Algorithm 3, Gaussian family\n(model-based)", color=_BLUE, marker="o")
APPROXIMATE = Look(
    label="Algorithm 3, $(\\varepsilon, \\delta)$\n(assumption-free)", color=_GREEN, marker="s"
)
STEINKE = Look(label="Steinke et al. (2023)\n(assumption-free)", color="#E69F00", marker="^")
DPSGD = Look(label="Algorithm 3, DP-SGD family\n(model-based)", color="#CC79A7", marker="D")
GAUSSIAN_CEILING = Look(label="no audit of the Gaussian\nfamily exceeds", color=_BLUE, style=":")
APPROXIMATE_CEILING = Look(label="no assumption-free audit\nexceeds", color=_GREEN, style=":")

EPSILON = r"$\varepsilon$ at $\delta = 10^{-5}$"
"""Label of most vertical axes."""


def level(epsilon: float | None, places: Sequence[Place]) -> tuple[Trace, ...]:
    """Return the true epsilon as a horizontal line over the range of some places."""
    if epsilon is None or not places:
        return ()
    xs = [x for x, _ in places]
    return TRUE.trace([(min(xs), epsilon), (max(xs), epsilon)])


def limits(epsilon: float | None) -> tuple[float, float] | None:
    """Return the ends of a vertical axis from just below 0, where markers are, to above the true epsilon."""
    return None if epsilon is None else (-0.03 * epsilon, 1.07 * epsilon)
