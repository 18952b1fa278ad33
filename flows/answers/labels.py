"""A comparison of bags of labels with randomized response: both advantages, and when they are equal."""

from collections.abc import Iterator
from typing import Any

from flows.answers.label_comparison import LabelComparison
from flows.answers.label_equal import equal_bag_size, equal_epsilon

_EQUATED = ("advantage", "log_ratio")
ROWS = ("advantage", "accuracy", "log_ratio", "infinite")
"""Quantities of the table."""


def contents_of(
    comparison: LabelComparison, bag_size: int | None, epsilon: float | None
) -> Iterator[dict[str, Any]]:
    """Yield the comparison of bags of this size with randomized response at this epsilon, for JSON.

    The same dictionary is yielded again with each part, since the searches take most of the time.

    Args:
        comparison: The prior and the mechanism with bags.
        bag_size: Examples in a bag; None leaves bags out.
        epsilon: Epsilon of the randomized response; None leaves it out.
    """
    content: dict[str, Any] = {
        "prior": comparison.prior,
        "mechanism": comparison.mechanism,
        "label_epsilon": comparison.label_epsilon,
        "level": comparison.level,
        "draw": comparison.drawn,
        "largest_bag_size": comparison.largest_bag_size,
        "bag_size": bag_size,
        "rr_epsilon": epsilon,
        "assumed": comparison.problem("accuracy", mechanism="none").assumption(),
        "blind_accuracy": comparison.blind().as_content(),
    }
    if bag_size is not None:
        content["bags"] = {q: comparison.bags(q, bag_size).as_content() for q in ROWS}
    if epsilon is not None:
        content["rr"] = {q: comparison.response(q, epsilon).as_content() for q in ROWS}
    yield content
    if bag_size is not None:
        content["equal_epsilon"] = {q: equal_epsilon(comparison, q, bag_size).as_content() for q in _EQUATED}
        yield content
    if epsilon is not None:
        content["equal_bag_size"] = {q: equal_bag_size(comparison, q, epsilon).as_content() for q in _EQUATED}
        yield content
