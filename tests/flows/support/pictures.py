"""SVG files of other processors: the same texts and shapes, and nearly the same coordinates."""

import re

SHIFT = 0.5
"""Largest difference of a coordinate in pixels: other processors may give other last digits of an end."""
NUMBER = r"-?\d+(?:\.\d+)?"


def texts(svg: str) -> list[str]:
    """The visible texts."""
    return re.findall(r"<t(?:ext|span)[^>]*>([^<]+)</t", svg)


def drawing(svg: str) -> tuple[str, list[float]]:
    """A picture without the numbers in its attributes and without the hashes of paths, and these numbers."""
    numbers: list[float] = []

    def bare(attribute: re.Match[str]) -> str:
        numbers.extend(map(float, re.findall(NUMBER, attribute[0])))
        return re.sub(NUMBER, "0", attribute[0])

    named = re.sub(r'(?<=["#])[a-z]?[0-9a-f]{10}(?=["_)])', "id", svg)
    return re.sub(r'="[^"#]*"', bare, named), numbers
