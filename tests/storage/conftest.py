"""A folder for the store of every test."""

from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where the store will be; nothing is there yet."""
    return tmp_path / "store"
