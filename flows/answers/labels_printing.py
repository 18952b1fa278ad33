"""The comparison of bags and randomized response as JSON content and as a table."""

import math
from collections.abc import Mapping
from typing import Any

from flows.answers.labels import MOST_BAG_SIZE, QUANTITIES, Comparison
from flows.printing import rounded_down, rounded_up

_ASSUMED = "\n(that the advantage falls with the bag size is proved, that the quantile does is assumed)"
_ROWS = ("advantage", "accuracy", "log_ratio", "infinite")


def as_content(comparison: Comparison, bag_size: int | None, epsilon: float | None) -> dict[str, Any]:
    """Return all that is said about bags of this size and randomized response at this epsilon.

    Args:
        comparison: The prior and the mechanism with bags.
        bag_size: Examples in a bag; None leaves bags out.
        epsilon: Of the randomized response; None leaves it out.
    """
    content: dict[str, Any] = {
        "prior": comparison.prior,
        "mechanism": comparison.mechanism,
        "label_epsilon": comparison.label_epsilon,
        "level": comparison.level,
        "bag_size": bag_size,
        "rr_epsilon": epsilon,
        "blind_accuracy": comparison.blind().as_content(),
    }
    if bag_size is not None:
        content["bags"] = {q: comparison.bags(q, bag_size).as_content() for q in _ROWS}
        content["equal_epsilon"] = {q: comparison.equal_epsilon(q, bag_size).as_content() for q in QUANTITIES}
    if epsilon is not None:
        content["rr"] = {q: comparison.response(q, epsilon).as_content() for q in _ROWS}
        content["equal_bag_size"] = {
            q: comparison.equal_bag_size(q, epsilon).as_content() for q in QUANTITIES
        }
    return content


def table(content: Mapping[str, Any]) -> str:
    """Return the comparison for people, ends rounded outwards."""
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
    for row in _ROWS:
        lines.append([names[row], *(_reading(readings[row]) for readings in columns.values())])
        if row == "log_ratio":
            bits = [_reading(_in_bits(readings[row])) for readings in columns.values()]
            lines.append([f"{quantile}, bits", *bits])
    blind = _reading(content["blind_accuracy"])
    parts = [f"prior {content['prior']}; a blind guess is right with probability {blind}", _aligned(lines)]
    if "equal_epsilon" in content:
        title = f"randomized response that reveals as much as bags of {content['bag_size']}: epsilon"
        parts.append(_equal(title, content["equal_epsilon"], quantile))
    if "equal_bag_size" in content:
        title = f"least bags that reveal no more than rr with epsilon = {content['rr_epsilon']:g}: bag size"
        parts.append(_equal(title, content["equal_bag_size"], quantile) + _ASSUMED)
    parts.append(
        "|I| is the absolute log-likelihood ratio of the two labels; its bits are log2 of the ratio."
    )
    return "\n\n".join(parts)


def _equal(title: str, equals: Mapping[str, Any], quantile: str) -> str:
    names = {"advantage": "in additive advantage", "log_ratio": f"in the {quantile}"}
    lines = [[names[q], _equal_text(equal)] for q, equal in equals.items()]
    return f"{title}\n{_aligned(lines)}"


def _equal_text(equal: Mapping[str, Any]) -> str:
    if equal["value"] is None:
        return f"none up to {MOST_BAG_SIZE}"
    return _reading(equal)


def _reading(reading: Mapping[str, float]) -> str:
    """Return an exact value, or the value with its ends."""
    low, high = rounded_down(reading["lower"]), rounded_up(reading["upper"])
    close = reading["upper"] == reading["lower"] or (
        math.isfinite(reading["upper"]) and reading["upper"] - reading["lower"] <= 1e-6 * reading["upper"]
    )
    sure = reading["confidence"] == 1.0
    if close:
        return f"{reading['value']:.6g}" + ("" if sure else f" [{100.0 * reading['confidence']:.4g} %]")
    doubt = "" if sure else f", {100.0 * reading['confidence']:.4g} %"
    return f"{reading['value']:.4g} [{low}, {high}{doubt}]"


def _in_bits(reading: Mapping[str, float]) -> dict[str, float]:
    return {name: x if name == "confidence" else x / math.log(2.0) for name, x in reading.items()}


def _aligned(lines: list[list[str]]) -> str:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
