"""The monotone index: it gives the results of a search, and without it, the search answers."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from privcore import Answer, Problem, find, find_problem
from storage import Found, open_store
from tests.storage.made_up import epsilon, put, row

SIGMAS = (0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
DELTAS = (1e-8, 1e-6, 1e-4)


def draw(number: int, between: float) -> list[Problem]:
    """Problems on the grid, or off it by a factor; steps and adjacency have no trend."""
    random_ = random.Random(number)
    return [
        epsilon(
            sigma=random_.choice(SIGMAS) * between,
            delta=random_.choice(DELTAS) / between,
            steps=random_.choice((4, 7)),
            participations=random_.randint(1, 4),
            epochs=random_.choice((1, 3, 9)),
            adjacency=random_.choice(("add-remove", "add")),
        )
        for _ in range(25)
    ]


def answers(root: Path, questions: list[Problem]) -> tuple[list[Found | None], int]:
    with open_store(root) as store:
        connection = store._cursor()
        count = connection.execute('select count(*) from corners."unamplified_epsilon"').fetchall()[0][0]
        connection.close()
        return [store.lookup(question) for question in questions], count


@pytest.mark.thorough
@pytest.mark.parametrize("limit", ["SMALL", "LARGEST_AXIS"])
def test_a_grid_that_is_not_tabulated_gives_the_same_answers(
    root: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    stored = {problem: 100 / problem.as_fields()["sigma"] for problem in draw(1, 1.0)}  # type: ignore[operator]
    put(root, [row(p, Answer.enclosure(0.0, top + i / 100)) for i, (p, top) in enumerate(stored.items())])
    questions = [*draw(2, 1.0), *draw(3, 1.1), *draw(4, 0.9), *draw(5, 100.0)]
    tabulated, cells = answers(root, questions)
    assert cells > 0
    monkeypatch.setattr(f"storage.sql.lookup.{limit}", 1)
    monkeypatch.setattr("storage.sql.lookup.SPARSE", 0.0)
    monkeypatch.setattr("storage.sql.build.LAYOUT", -1)
    monkeypatch.setattr("storage.sql.snapshot.LAYOUT", -1)
    searched, cells = answers(root, questions)
    assert cells == 0
    assert any(found is None for found in searched)
    for one, other in zip(tabulated, searched, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert (one.lower, one.upper, one.exact) == (other.lower, other.upper, other.exact)


def test_a_problem_of_one_field_is_looked_up_between_two_stored_values(root: Path) -> None:
    kind, method = find_problem("membership-information-advantage"), find("membership.information")()
    stored = {0.5: Answer.enclosure(0.1, 0.2), 1.5: Answer.enclosure(0.3, 0.4)}
    put(root, [row(kind.from_fields({"information": x}), y, method=method) for x, y in stored.items()])
    with open_store(root) as store:
        found = store.lookup(kind.from_fields({"information": 1.0}))
    assert found is not None
    assert (found.lower, found.upper) == (0.1, 0.4)


@pytest.mark.thorough
def test_a_snapshot_does_not_outlive_the_proofs_it_rests_on() -> None:
    layout = "from storage.sql.build import LAYOUT; print(LAYOUT)"
    withdrawn = "from privcore import find_problem as f; k = f('poisson-delta'); k.monotone = {}; "
    kept, changed = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for code in (layout, withdrawn + layout)
    )
    assert kept.split("-")[0] == changed.split("-")[0]
    assert kept != changed
