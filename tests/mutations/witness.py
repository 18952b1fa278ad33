"""Pytest plugin: checks that the packages under test are those of the copy, and records the first failure."""

import importlib.util
import json
import os
import re
from pathlib import Path

import pytest

PACKAGES = ("flows", "tasks", "storage", "privcore")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to run if another checkout would be imported."""
    for name in PACKAGES:
        found = importlib.util.find_spec(name)
        origin = found.origin if found else None
        if origin is None or not Path(origin).resolve().is_relative_to(Path.cwd().resolve()):
            raise pytest.UsageError(
                f"{name} would be imported from {origin}, expected the copy {Path.cwd()}."
            )


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _record(report.nodeid, str(report.longreprtext))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _record(report.nodeid, str(report.longreprtext))


def _record(test: str, why: str) -> None:
    path = Path(os.environ["PRIVSWEEP_WITNESS"])
    if "PYTEST_XDIST_WORKER" not in os.environ and not path.exists():
        without_group = re.sub(r"@[^]@]*$", "", test)  # pytest-xdist writes its group behind the name
        path.write_text(json.dumps({"test": without_group, "why": why}), encoding="utf-8")
