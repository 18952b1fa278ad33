"""A store's folder and a tally for every test of a fault, and the table of all tallies at the end."""

from pathlib import Path

import pytest

from tests.faults.report import table
from tests.faults.tally import KEY, Tally


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where the store will be; nothing is there yet."""
    return tmp_path / "store"


@pytest.fixture
def faults(request: pytest.FixtureRequest) -> Tally:
    """The tally of a test; its docstring begins with the number of the fault, such as `T7: `."""
    tally = Tally(request.function.__doc__)
    request.node.user_properties.append((KEY, tally.numbers))
    return tally


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if lines := table(terminalreporter.stats):
        terminalreporter.section("faults")
        for line in lines:
            terminalreporter.write_line(line)
