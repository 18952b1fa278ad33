"""Every sampler has a name and colours that can be read."""

import re
from pathlib import Path

import pytest

from flows.answers.parse import DROP_LAST, SAMPLING
from flows.answers.training.palette import DARK, LIGHT, NAMES

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


@pytest.mark.parametrize(("shades", "ground"), [(LIGHT, 0), (DARK, 1)], ids=["light", "dark"])
def test_the_page_has_the_same_colours(shades: dict[str, str], ground: int, repository: Path) -> None:
    style = (repository / "flows" / "page" / "static" / "page.css").read_text()
    block = re.findall(r":root \{.*?\}", style, flags=re.DOTALL)[ground]
    found = {
        name: color for name, color in re.findall(r"--([a-z-]+): (#[0-9a-f]{6})\b", block) if name in NAMES
    }
    assert found == {name: shades[name] for name in NAMES if name != "truncated-poisson"}


@pytest.mark.parametrize("sampling", NAMES)
def test_a_colour_can_be_read_on_its_ground(sampling: str) -> None:
    assert contrast(LIGHT[sampling], WHITE) >= READABLE
    assert contrast(DARK[sampling], BLACK) >= READABLE
