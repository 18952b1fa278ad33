"""SVG files of other processors: the same texts and shapes, and nearly the same coordinates."""

import re

from tests.docs.pages import matches

SHIFT = 0.5
"""Largest difference of a coordinate in pixels: other processors may give other last digits of an end."""
NUMBER = r"-?\d+(?:\.\d+)?"


def texts(svg: str) -> list[str]:
    """The visible texts."""
    return re.findall(r"<t(?:ext|span)[^>]*>([^<]+)</t", svg)


def same_texts(made: str, committed: str) -> bool:
    """Return whether two pictures have the same visible texts, except last digits of decimals."""
    return matches("\n".join(texts(made)), "\n".join(texts(committed)))


def drawing(svg: str) -> tuple[str, list[float]]:
    """A picture without texts, hashes of paths, and the numbers in its attributes; and these numbers."""
    numbers: list[float] = []

    def bare(attribute: re.Match[str]) -> str:
        numbers.extend(map(float, re.findall(NUMBER, attribute[0])))
        return re.sub(NUMBER, "0", attribute[0])

    named = re.sub(r'(?<=["#])[a-z]?[0-9a-f]{10}(?=["_)])', "id", svg)
    return re.sub(r">[^<>]+<", "><", re.sub(r'="[^"#]*"', bare, named)), numbers
