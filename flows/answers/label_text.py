"""A comparison of bags of labels with randomized response, as text."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from flows.answers.label_quantity import PROBLEMS
from flows.answers.labels import ROWS
from flows.printing import exactly, plain, rounded_down, rounded_up, say
from privcore import find_problem

LEGEND = "|I| is the absolute log-likelihood ratio of the two labels; its bits are log2 of the ratio."
"""Last paragraph of the text."""
_RISES = "\n(the advantage is proved to fall with the bag size; the quantile can rise with it)"


def paragraphs(content: Mapping[str, Any]) -> list[str]:
    """Return the parts of a comparison as text, with ends rounded outwards.

    Args:
        content: Content of `contents_of`; later parts only add paragraphs at the end.
    """
    columns = {}
    if "bags" in content:
        noise = "" if math.isinf(content["label_epsilon"]) else f", epsilon = {content['label_epsilon']:g}"
        columns[f"{content['mechanism']}, bags of {content['bag_size']}{noise}"] = content["bags"]
    if "rr" in content:
        columns[f"rr, epsilon = {content['rr_epsilon']:g}"] = content["rr"]
    quantile = f"{content['level']:g} quantile of |I|"
    names = {
        "advantage": "additive advantage",
        "accuracy": "accuracy of the best guess",
        "log_ratio": f"{quantile}, nats",
        "infinite": "labels revealed for certain",
    }
    lines = [["", *columns]]
    for row in ROWS:
        largest = find_problem(PROBLEMS[row]).largest
        lines.append([names[row], *(_reading(readings[row], largest) for readings in columns.values())])
        if row == "log_ratio":
            bits = [_reading(_in_bits(readings[row])) for readings in columns.values()]
            lines.append([f"{quantile}, bits", *bits])
    blind = _reading(content["blind_accuracy"], find_problem(PROBLEMS["accuracy"]).largest)
    cut = " cut into random bags" if content["draw"] == "partition" else ""
    parts = [
        f"prior {exactly(content['prior'])}{cut}; a blind guess is right with probability {blind}",
        _aligned(lines),
    ]
    if content["assumed"]:
        parts.append(f"assumed: {exactly(content['assumed'])}")
    if "equal_epsilon" in content:
        title = f"randomized response that reveals as much as bags of {content['bag_size']}: epsilon"
        parts.append(_equal(title, content["equal_epsilon"], quantile, content))
    if "equal_bag_size" in content:
        title = (
            f"smallest bags that reveal no more than rr with epsilon = {content['rr_epsilon']:g}: bag size"
        )
        parts.append(_equal(title, content["equal_bag_size"], quantile, content) + _RISES)
    return parts


def _equal(title: str, equals: Mapping[str, Any], quantile: str, content: Mapping[str, Any]) -> str:
    names = {"advantage": "in additive advantage", "log_ratio": f"in the {quantile}"}
    lines = [
        [names[q], _none(equal, content["largest_bag_size"]) if equal["value"] is None else _reading(equal)]
        for q, equal in equals.items()
    ]
    return f"{title}\n{_aligned(lines)}"


def _none(equal: Mapping[str, float], largest: int) -> str:
    """Return that no bag size reveals as little, or that none was found."""
    return f"none{'' if equal['lower'] > largest else ' found'} up to {largest}"


def _reading(reading: Mapping[str, float], largest: float = math.inf) -> str:
    """Return an exact value, or the value with its ends; `largest` is the largest possible value."""
    low, high = rounded_down(reading["lower"]), rounded_up(reading["upper"])
    close = reading["upper"] == reading["lower"] or (
        math.isfinite(reading["upper"]) and reading["upper"] - reading["lower"] <= 1e-6 * reading["upper"]
    )
    sure = reading["confidence"] == 1.0
    certain = _certain(reading, largest)
    if close:
        doubt = "" if sure else f" [{100.0 * reading['confidence']:.4g} %{certain}]"
        return f"{reading['value']:.6g}{doubt}"
    doubt = "" if sure else f", {100.0 * reading['confidence']:.4g} %{certain}"
    return f"{reading['value']:.4g} [{low}, {high}{doubt}]"


def _certain(reading: Mapping[str, float], largest: float) -> str:
    """Return the ends that are proved, for a reading with a confidence; "" if nothing is proved."""
    if "certain_upper" not in reading:
        return ""
    if reading["certain_lower"] <= 0.0 and reading["certain_upper"] >= largest:
        return ""
    ends = rounded_down(reading["certain_lower"], 4), rounded_up(reading["certain_upper"], 4)
    return f"; certain {ends[0]} to {ends[1]}"


def _in_bits(reading: Mapping[str, float]) -> dict[str, float]:
    return {name: x if name == "confidence" else x / math.log(2.0) for name, x in reading.items()}


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    return plain(lines[0], lines[1:], [False] * len(lines[0]), "")


def print_comparison(content: Mapping[str, Any]) -> None:
    """Print a comparison as text.

    Args:
        content: Content of `contents_of`.
    """
    say(*paragraphs(content), LEGEND, sep="\n\n")
