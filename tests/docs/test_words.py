"""Plain English: phrases that make readers stop become fewer, and no message or help text has any."""

import pytest

from tests.docs.words import KINDS, counts

pytestmark = pytest.mark.xdist_group("words")
CEILING = {"message": 0, "docstring": 19, "comment": 0, "documentation": 4, "test": 23}
"""Largest count of each kind of text. It may only be lowered."""


@pytest.fixture(scope="module")
def found() -> dict[str, int]:
    return {kind: counted.total() for kind, counted in counts().items()}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_phrases_that_make_readers_stop_become_fewer(kind: str, found: dict[str, int]) -> None:
    assert found[kind] <= CEILING[kind], "python -m tests.docs.words PATH ... shows each"
