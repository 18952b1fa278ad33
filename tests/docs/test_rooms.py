"""The pages on architecture and words show the rooms and name the files that there are."""

import re
from pathlib import Path

import pytest

from tests.docs.rooms import arrows, circles, direct, drawn, floors

COMMAND = "python -m tests.docs.rooms docs/rooms-after.svg"


def test_the_picture_of_the_rooms_is_what_the_imports_are_now(repository: Path) -> None:
    now = drawn(arrows())
    assert (repository / "docs" / "rooms-after.svg").read_text() == now, f"run {COMMAND}"


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/glossary.md", "CONTRIBUTING.md"])
def test_every_file_that_a_page_on_the_code_names_is_there(page: str, repository: Path) -> None:
    text = (repository / page).read_text()
    named = re.findall(r"`((?:flows|tasks|storage|privcore|tests|docs|deploy)/[\w./*-]+)`", text)
    assert len(named) >= 5
    missing = [name for name in named if not list(repository.glob(name.rstrip("/")))]
    assert not missing


# ------------------------------------------------------------------------------- the drawing itself

PAIRS = frozenset({("a.x", "a.y"), ("a.y", "a.x"), ("a.y", "b"), ("a.z", "a.x"), ("a.z", "b")})


def test_a_circle_is_one_floor_and_the_rooms_around_it_keep_theirs() -> None:
    assert circles(PAIRS) == [frozenset({"a.x", "a.y"})]
    assert floors(PAIRS) == {"b": 0, "a.x": 1, "a.y": 1, "a.z": 2}


def test_an_arrow_past_another_room_is_not_direct() -> None:
    assert ("a.z", "b") not in direct(PAIRS)
    assert {("a.z", "a.x"), ("a.y", "b")} <= direct(PAIRS)
