"""Reference values of training runs lie between our bounds, and one-sided ones are reached.

`../data/runs.csv` has values computed by other means than ours. Its column digits_or_kind is `exact:d` for a
true value to d digits; `at_least` or `at_most` for a bound of the true value; and `peer` for the number of
another accountant, for comparison only.
"""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from privcore import Point, Problem, evaluate, find
from tests.privcore.draws import problem

TABLE = Path(__file__).parents[1] / "data" / "runs.csv"
Row = dict[str, str]
NAMES = {
    "balls-in-bins-fixed": "balls-in-bins",
    "fixed-size-without-replacement": "fixed-size",
    "fixed-size-with-replacement": "with-replacement",
    "unamplified": "none",
    "unamplified-group": "none",
    "poisson-group": "poisson",
    "allocation-group-occupancy": "allocation",
}
FIELDS = {
    "bins": "steps",
    "batches": "steps",
    "rate": "sampling_probability",
    "batch": "batch_size",
}
SHUFFLED = {"shuffle-reshuffled": "each-epoch", "shuffle-once": "once"}
ASKED = ("delta", "epsilon", "direction", "adjacency", "fpr", "order", "prior", "phases", "scheme")


def rows() -> list[Row]:
    """Return the rows about epsilon or delta."""
    with TABLE.open() as lines:
        return [row for row in csv.DictReader(lines) if row["quantity"] in ("epsilon", "delta")]


def phase(scheme: str, given: dict[str, Any]) -> str:
    """Return the text of a phase."""
    fields = {FIELDS.get(name, name): value for name, value in given.items() if name not in ASKED}
    name = "shuffling" if scheme in SHUFFLED else NAMES.get(scheme, scheme)
    if scheme in SHUFFLED:
        fields["redraw"] = SHUFFLED[scheme]
    if name == "balls-in-bins":
        fields["redraw"] = "once"
    if name == "none":
        fields.pop("sampling_probability", None)
    return f"{name}({','.join(f'{key}={value}' for key, value in fields.items())})"


def question(row: Row) -> Problem:
    """Return the problem whose true value the row gives or bounds."""
    given = json.loads(row["params"])
    listed = given.get("phases") or [given | {"scheme": row["scheme"]}]
    relation, direction = given.get("adjacency", "add-remove"), given.get("direction", "both")
    words = {"add-remove": direction, "zero-out": f"zero-out-{direction}", "replace-one": "replace-one"}
    at = "delta" if row["quantity"] == "epsilon" else "epsilon"
    return problem(
        f"run-{row['quantity']}",
        phases="; ".join(phase(each["scheme"], each) for each in listed),
        adjacency=relation if direction == "both" else words[relation],
        **{at: given[at]},
    )


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["id"])
def test_a_reference_value_is_enclosed_or_respected(row: Row) -> None:
    asked, value = question(row), float(row["value"])
    answer = evaluate(Point(problem=asked, method=find("runs.certified")()))
    kind, _, digits = row["digits_or_kind"].partition(":")
    slack = 0.5 * 10.0 ** (1 - int(digits)) if digits else 0.0  # of the printed value
    assert answer.ok, answer
    if kind == "exact":
        assert answer.lower <= value * (1.0 + slack), answer
        assert answer.upper >= value * (1.0 - slack), answer
        assert answer.upper <= 1.01 * answer.lower, answer
    elif kind == "at_least":
        assert answer.lower >= 0.99 * value, answer
        assert answer.upper >= value * (1.0 - slack), answer
    elif kind == "at_most":
        assert answer.upper <= 1.01 * value, answer
    else:
        assert answer.lower <= value * 1.001, answer


def test_the_trap_of_kept_bins() -> None:
    """Bins that are kept give 2.9 times the epsilon of bins that are drawn in each epoch."""
    fields: dict[str, Any] = {"sigma": 1.0, "steps": 10, "epochs": 10, "delta": 1e-2}
    for word, low, high in (("once", 9.311, 9.356), ("each-epoch", 3.198, 3.218)):
        asked = problem("balls-in-bins-epsilon", redraw=word, adjacency="add-remove", **fields)
        answer = evaluate(Point(problem=asked, method=find("bins.certified")()))
        assert answer.lower <= high, word
        assert low <= answer.upper <= 1.01 * answer.lower, word
