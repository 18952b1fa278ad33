"""Fixtures of fault tests: the folder of a store and a tally; the tallies travel in the reports."""

from pathlib import Path

import pytest

from tests.faults.report import table
from tests.faults.tally import KEY, Tally


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Folder of a store that does not exist yet."""
    return tmp_path / "store"


@pytest.fixture
def faults(request: pytest.FixtureRequest) -> Tally:
    """The tally of a test, whose docstring begins with the number of the fault, such as `T7: `."""
    tally = Tally(request.function.__doc__)
    request.node.user_properties.append((KEY, tally.numbers))
    return tally


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if lines := table(terminalreporter.stats):
        terminalreporter.section("faults")
        for line in lines:
            terminalreporter.write_line(line)
