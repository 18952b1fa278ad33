"""Answers of older versions of a method: used if only the width has changed since, otherwise left out."""

from pathlib import Path

import pytest

from privcore import Answer, find
from privcore.registry import used_versions, versions
from privcore.stored_names import USED_SINCE
from storage import open_store
from tests.storage.made_up import put, row

RUN = {
    "sigma": 1.0,
    "steps": 100,
    "sampling_probability": 0.01,
    "delta": 1e-5,
    "redraw": "once",
    "adjacency": "add-remove",
}


@pytest.mark.parametrize("name", ["allocation.certified", "bins.certified", "poisson.certified"])
def test_a_wider_answer_of_an_older_version_is_used_until_there_is_a_narrower_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    method = find(name)
    kind = next(each for each in method.problems if each.asks == "epsilon")
    problem = kind.from_fields({each: RUN[each] for each in kind.parameters if each in RUN})
    with monkeypatch.context() as earlier:
        earlier.setattr(method, "version", USED_SINCE[name])
        put(tmp_path / "store", row(problem, Answer.enclosure(1.0, 2.0), method=method()))
    with open_store(tmp_path / "store") as store:
        found = store.lookup(problem)
        assert found is not None
        assert (found.lower, found.upper) == (1.0, 2.0)
    put(tmp_path / "store", row(problem, Answer.enclosure(1.5, 1.6), method=method()))
    with monkeypatch.context() as earlier:
        earlier.setattr(method, "version", USED_SINCE[name] - 1)
        put(tmp_path / "store", row(problem, Answer.enclosure(1.55, 1.56), method=method()))
    with open_store(tmp_path / "store") as store:
        found = store.lookup(problem)
        assert found is not None
        assert (found.lower, found.upper) == (1.5, 1.6)


def test_versions_that_are_used_are_not_newer_than_the_method() -> None:
    assert all(1 <= USED_SINCE[name] < versions()[name] for name in USED_SINCE)
    others = {name: n for name, n in used_versions().items() if name not in USED_SINCE}
    assert others.items() <= versions().items()
