"""Names and colours of samplers, the same on the page, in reports, in figures and in terminals.

The colours are derived from those of Okabe and Ito, which are distinguishable with any colour vision, and
have a contrast of at least 4.5 to a white and to a dark ground. Kept bins resemble random allocation on
purpose: the same loader, drawn once instead of in each epoch. A truncated batch is one of Poisson sampling.
"""

from flows.answers.parse import DROP_LAST
from privcore.stored_names import SAMPLERS

NAMES = {word: sampler.title for word, sampler in SAMPLERS.items()} | {DROP_LAST: "shuffled, drop_last"}
"""Names of samplers for pictures and tables, by the words of `--sampling`."""

LIGHT = dict.fromkeys(SAMPLERS, "#6b7280") | {
    "allocation": "#0072b2",
    "poisson": "#00825f",
    "shuffling": "#c44f00",
    DROP_LAST: "#b3261e",
    "balls-in-bins": "#287aa9",
    "fixed-size": "#9a6a00",
    "with-replacement": "#a8588a",
    "truncated-poisson": "#00825f",
}
"""Colours on a light ground."""

DARK = dict.fromkeys(SAMPLERS, "#9aa4af") | {
    "allocation": "#5ab4f0",
    "poisson": "#3fcf9f",
    "shuffling": "#ff8a4c",
    DROP_LAST: "#ff9d8f",
    "balls-in-bins": "#8fd0f5",
    "fixed-size": "#e8b64c",
    "with-replacement": "#e39ac6",
    "truncated-poisson": "#3fcf9f",
}
"""Colours on a dark ground."""

GROUNDS = {
    "light": {"ground": "#ffffff", "text": "#1b1f24", "dim": "#57606a", "grid": "#e4e8ec"},
    "dark": {"ground": "#0d1117", "text": "#e6edf3", "dim": "#8b949e", "grid": "#262c36"},
}
"""Colours of grounds, of texts and of the lines of a grid."""


def shades(ground: str) -> dict[str, str]:
    """Return the colours of samplers on a ground.

    Args:
        ground: `light` or `dark`.
    """
    return LIGHT if ground == "light" else DARK


NAMED = {title: LIGHT[word] for word, title in NAMES.items()}
"""Colours on a light ground, by the names of samplers."""
