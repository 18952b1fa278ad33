"""A folder for the store of every test."""

from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The path of a store that does not exist yet."""
    return tmp_path / "store"
