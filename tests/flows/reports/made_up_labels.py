"""Made-up brackets of bags and of randomized response, which `compare-labels` compares."""

from typing import Any

from privcore import Answer
from tests.storage.made_up import claimed

RELEASED: dict[str, Any] = {"mechanism": "llp", "prior": "point(0.3)", "bag_size": 8}
"""Bags of eight labels."""

RESPONDED = [
    claimed(
        "label-advantage",
        "labels.response",
        Answer.enclosure(0.1 * e, 0.1 * e + 0.01),
        mechanism="rr",
        prior="point(0.3)",
        label_epsilon=e,
    )
    for e in (1.0, 3.0)
]
"""Advantages of randomized response at two epsilons, around that of the bags."""

ADVANTAGE = claimed("label-advantage", "labels.composition", Answer.enclosure(0.15, 0.16), **RELEASED)
"""The advantage of the bags."""
