"""Name and colours of each sampler, the same in every picture and table.

The colours are derived from those of Okabe and Ito, which are distinguishable with any colour vision, and
have a contrast of at least 4.5 to a white and to a dark ground. Kept bins resemble random allocation on
purpose: the same loader, drawn once instead of in each epoch. A truncated batch is one of Poisson sampling.
"""

NAMES = {
    "allocation": "random allocation",
    "poisson": "Poisson",
    "shuffling": "shuffled",
    "balls-in-bins": "kept bins",
    "fixed-size": "fixed size",
    "with-replacement": "with replacement",
    "truncated-poisson": "truncated Poisson",
    "none": "no amplification",
}
"""Names of samplers for pictures and tables, by the words of `--sampling`."""

LIGHT = {
    "allocation": "#0072b2",
    "poisson": "#00825f",
    "shuffling": "#c44f00",
    "balls-in-bins": "#287aa9",
    "fixed-size": "#9a6a00",
    "with-replacement": "#a8588a",
    "truncated-poisson": "#00825f",
    "none": "#6b7280",
}
"""Colours on a light ground."""

DARK = {
    "allocation": "#5ab4f0",
    "poisson": "#3fcf9f",
    "shuffling": "#ff8a4c",
    "balls-in-bins": "#8fd0f5",
    "fixed-size": "#e8b64c",
    "with-replacement": "#e39ac6",
    "truncated-poisson": "#3fcf9f",
    "none": "#9aa4af",
}
"""Colours on a dark ground."""
