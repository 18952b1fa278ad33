"""Names and looks of the curves of audits, the same in every figure."""

from collections.abc import Sequence

from flows.figures.panels import BLACK, BLUE, GREEN, ORANGE, PINK, Look, Place, Trace

TRUE = Look(label="true epsilon", color=BLACK, style="--")
GAUSSIAN = Look(label="Algorithm 3, Gaussian family\n(model-based)", color=BLUE, marker="o")
APPROXIMATE = Look(label="Algorithm 3, $(\\varepsilon, \\delta)$\n(assumption-free)", color=GREEN, marker="s")
STEINKE = Look(label="Steinke et al. (2023)\n(assumption-free)", color=ORANGE, marker="^")
DPSGD = Look(label="Algorithm 3, DP-SGD family\n(model-based)", color=PINK, marker="D")
GAUSSIAN_CEILING = Look(label="ceiling of audits with\nthe Gaussian family", color=BLUE, style=":")
APPROXIMATE_CEILING = Look(label="ceiling of audits,\nassumption-free", color=GREEN, style=":")

EPSILON = r"$\varepsilon$ at $\delta = 10^{-5}$"
"""Label of most vertical axes."""


def level(epsilon: float | None, places: Sequence[Place]) -> tuple[Trace, ...]:
    """Return the true epsilon as a horizontal line over the range of some points."""
    if epsilon is None or not places:
        return ()
    xs = [x for x, _ in places]
    return TRUE.trace([(min(xs), epsilon), (max(xs), epsilon)])


def limits(epsilon: float | None) -> tuple[float, float] | None:
    """Return the ends of a vertical axis: just below 0, for whole markers, and above the true epsilon."""
    return None if epsilon is None else (-0.03 * epsilon, 1.07 * epsilon)
