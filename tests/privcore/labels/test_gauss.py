"""Quadrature over the other labels: one rule is a lower bound, the other one an upper bound."""

from typing import Any

import pytest

from privcore import Answer, Point, evaluate, find, find_problem
from privcore.labels import cells


@pytest.mark.parametrize(
    "given",
    [
        {"mechanism": "llp", "bag_size": 3},
        {"mechanism": "llp", "bag_size": 4},
        {"mechanism": "llp-geometric", "bag_size": 3, "label_epsilon": 4.0},
    ],
)
def test_a_quadrature_with_few_nodes_encloses_one_with_many(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = find_problem("label-advantage").from_fields({"prior": "uniform", **given})

    def answer() -> Answer:
        return evaluate(Point(problem=problem, method=find("labels.gauss")()))

    many = answer()
    monkeypatch.setattr(cells, "_NODES", {2: 3, 3: 3})
    few = answer()
    assert few.lower < many.lower <= many.upper < few.upper
