"""The table of faults: `python -m tests.faults.report FILE ...` runs the suite and writes it into a file.

Further arguments go to pytest. The table is below the last heading of the file.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.faults.tally import KEY

FAULTS = {
    "T1": "worker killed in the middle of a batch",
    "T3": "run killed at a tenth, half and nine tenths",
    "T6": "run killed at successive disk operations",
    "T7": "disk full",
    "T8": "disk fails, denies access, or is read-only",
    "T9": "part truncated, emptied or deleted",
    "T10": "bit flipped",
    "T11": "eight writers at once",
    "T12": "one sweep started twice",
    "T13": "clock an hour off, or set back",
    "T15": "column added, missing, or of another type",
    "T16": "store of a newer release",
    "T19": "10^12 points requested",
    "T22": "path in a name",
    "T23": "SQL in a field",
    "T24": "query that does not end",
    "T25": "formula, markup or control character in a text",
    "T26": "pickle in a store or sweep",
    "T27": "NaN and infinity in rows",
    "T28": "other number of workers, other order, three resumptions",
    "T33": "thousands of tiny parts",
    "T34": "compaction while others read and write",
}
COLUMNS = ("fault", "", "tests", "tried", "survived", "rows checked", "lost", "duplicated", "recovery s")
_SUMS = ("tried", "survived", "rows", "lost", "duplicated")


def table(stats: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the table as lines of Markdown, or no lines if no fault was tried.

    Args:
        stats: Reports by outcome, as pytest's terminal reporter keeps them; with pytest-xdist they come from
            all its processes.
    """
    tallies = [
        content
        for reports in stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for key, content in report.user_properties
        if key == KEY
    ]
    if not tallies:
        return []
    lines = [_line(COLUMNS), _line(["---", "---", *["---:"] * (len(COLUMNS) - 2)])]
    of_fault = {name: [t for t in tallies if t["fault"] == name] for name in FAULTS}
    for name, mine in [*of_fault.items(), ("all", tallies)]:
        if mine:
            sums = [str(sum(t[key] for t in mine)) for key in _SUMS]
            longest = max(t["seconds"] for t in mine)
            seconds = f"{longest:.2f}" if longest else ""
            lines.append(_line([name, FAULTS.get(name, ""), str(len(mine)), *sums, seconds]))
    return lines


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


class Writer:
    """A pytest plugin that writes the table of a session into a file, if every test has passed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        lines = table(terminalreporter.stats)
        if exitstatus != pytest.ExitCode.OK or not lines:
            terminalreporter.write_line(f"{self.path} is left as it was.")
            return
        before, _, _ = self.path.read_text().partition("\n| fault |")
        self.path.write_text("\n".join([before.rstrip(), "", *lines, ""]))


def main(path: Path, arguments: Sequence[str]) -> int:
    """Run the fault tests with these arguments for pytest, write the table, and return the exit code."""
    return int(pytest.main([str(Path(__file__).parent), *arguments], plugins=[Writer(path)]))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
