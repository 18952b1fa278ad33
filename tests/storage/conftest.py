"""A folder for the store of every test, and addresses of stores in buckets."""

from pathlib import Path

import pytest

from tests.s3 import address, bucket, s3_server

__all__ = ["address", "bucket", "root", "s3_server"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where the store will be; nothing is there yet."""
    return tmp_path / "store"
