"""The documentation shows the existing rooms and names existing files."""

import re
from pathlib import Path

from tests.docs.rooms import arrows, circles, direct, drawn, floors

COMMAND = "python -m tests.docs.rooms docs/rooms-after.svg"


def test_the_picture_of_the_rooms_is_what_the_imports_are_now(repository: Path) -> None:
    now = drawn(arrows())
    assert (repository / "docs" / "rooms-after.svg").read_text() == now, f"run {COMMAND}"


def test_every_file_that_a_page_names_is_there(repository: Path) -> None:
    pages = [repository / "README.md", repository / "CONTRIBUTING.md", *(repository / "docs").rglob("*.md")]
    named = {
        (page.name, name)
        for page in pages
        for name in re.findall(r"`((?:flows|tasks|storage|privcore|tests|docs)/[\w./*-]+)`", page.read_text())
    }
    assert len(named) >= 50
    assert sorted((page, name) for page, name in named if not list(repository.glob(name.rstrip("/")))) == []


# ------------------------------------------------------------------------------- the drawing itself

PAIRS = frozenset({("a.x", "a.y"), ("a.y", "a.x"), ("a.y", "b"), ("a.z", "a.x"), ("a.z", "b")})


def test_a_circle_is_one_floor_and_the_rooms_around_it_keep_theirs() -> None:
    assert circles(PAIRS) == [frozenset({"a.x", "a.y"})]
    assert floors(PAIRS) == {"b": 0, "a.x": 1, "a.y": 1, "a.z": 2}


def test_an_arrow_past_another_room_is_not_direct() -> None:
    assert ("a.z", "b") not in direct(PAIRS)
    assert {("a.z", "a.x"), ("a.y", "b")} <= direct(PAIRS)
