"""Every sampler has a name and colours that can be read."""

import pytest

from flows.answers.parse import DROP_LAST, SAMPLING
from flows.answers.training.compare import DARK, LIGHT, NAMES

WHITE, BLACK = "#ffffff", "#0d1117"  # the grounds of GitHub's pages
READABLE = 4.5
"""Least contrast of text to its ground: WCAG 2.2, success criterion 1.4.3."""


def luminance(color: str) -> float:
    """Relative luminance of a colour, as WCAG defines it."""
    channels = [int(color[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_every_sampler_has_a_name_and_two_colours() -> None:
    assert set(NAMES) == set(LIGHT) == set(DARK) == {*SAMPLING, DROP_LAST}
    assert len(set(NAMES.values())) == len(NAMES)


@pytest.mark.parametrize("sampling", NAMES)
def test_a_colour_can_be_read_on_its_ground(sampling: str) -> None:
    assert contrast(LIGHT[sampling], WHITE) >= READABLE
    assert contrast(DARK[sampling], BLACK) >= READABLE
