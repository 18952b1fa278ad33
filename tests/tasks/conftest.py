"""Methods that misbehave, importable here and in every child process."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def faulty() -> Iterator[ModuleType]:
    """The module of faulty methods; a guard's child can import the modules of its parent."""
    folder = str(Path(__file__).parents[1] / "flows" / "support")
    sys.path.insert(0, folder)
    yield importlib.import_module("faulty_methods")
    sys.path.remove(folder)
