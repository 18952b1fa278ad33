"""Releases that cannot happen: a sweep computes the others, and no lookup takes a bound from such a row."""

import json
from pathlib import Path

import pytest

from privcore.labels.bag import LabelsBag
from storage import open_store
from tests.flows.small_store import Command, point, store_of

FIELDS = {"mechanism": "llp", "bag": "0.5,1,0.5"}
"""The sum is 1, 2 or 3; given the sum 1, the first label is 0 for certain."""


def posterior(privsweep: Command, store: Path, released: str) -> tuple[float, float]:
    """Return the bracket of a lookup."""
    words = [f"{name}={value}" for name, value in {**FIELDS, "member": 1}.items()]
    assert (
        privsweep("lookup", "label-posterior", *words, f"released={released}", "--store", store, "--json")
        == 0
    )
    return privsweep.json["lower"], privsweep.json["upper"]


def test_a_sweep_over_all_sums_computes_the_possible_ones_and_names_the_others(
    tmp_path: Path, privsweep: Command
) -> None:
    words = [f"{name}={value}" for name, value in {**FIELDS, "member": 1}.items()]
    sweep = ("run", "label-posterior", *words, "released=0,1,2,3", "--store", tmp_path, "--engine", "serial")
    assert privsweep(*sweep, "--json") == 0
    assert json.loads(privsweep.out)["statuses"] == {"ok": 3, "not_applicable": 1}
    with open_store(tmp_path) as store:
        (detail,) = store.sql("select detail from results where status = 'not_applicable'")[
            "detail"
        ].to_pylist()
    certain = "since 1 labels of this bag are 1 and 0 are 0 for certain"
    assert detail == f"Expected released in {{1, ..., 3}} for llp, {certain}, got 0."
    assert posterior(privsweep, tmp_path, "1") == (0.0, 0.0)
    assert posterior(privsweep, tmp_path, "3") == (1.0, 1.0)


def test_a_row_about_an_impossible_release_bounds_no_possible_one(tmp_path: Path, privsweep: Command) -> None:
    rows = [point("label-posterior", "labels.bag", **FIELDS, released=released) for released in (0.0, 2.0)]
    store = store_of(tmp_path / "store", rows)
    lower, upper = posterior(privsweep, store, "1")
    assert lower == 0.0
    assert 0.5 <= upper < 0.5 + 1e-9, "the posterior given the sum 2, whose released value is larger"


def test_a_row_that_an_earlier_release_stored_about_an_impossible_release_is_not_used(
    tmp_path: Path, privsweep: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(LabelsBag, "version", 2)
        earlier.setattr(LabelsBag, "applies", lambda method, problem: None)
        earlier.setattr("privcore.labels.bag._certain", lambda problem, eta: eta)
        store = store_of(tmp_path / "store", [point("label-posterior", "labels.bag", **FIELDS, released=0.0)])
    with open_store(store) as opened:
        assert opened.sql("select lower, method_version from results").to_pylist() == [
            {"lower": 0.5, "method_version": 2}
        ]
    store_of(store, [point("label-posterior", "labels.bag", **FIELDS, released=2.0)])
    lower, upper = posterior(privsweep, store, "1")
    assert lower == 0.0
    assert 0.5 <= upper < 0.5 + 1e-9
