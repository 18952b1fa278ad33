"""Measures the seconds of costly test functions: `python -m tests.costs` writes tests/costs.json.

All tests but soak run with all their cases, in hours. With the name of a report, which pytest writes with
`--junitxml`, only the functions that have run for it get new numbers.
"""

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

from tests.suites import BUDGET, COSTS


def measured(report: Path) -> dict[str, list[float]]:
    """Return the seconds of the cases of each test function of a report."""
    found: dict[str, list[float]] = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):
        folders, is_module, rest = case.attrib["classname"].partition(".test_")
        module, *classes = f"test_{rest}".split(".")
        test = case.attrib["name"].partition("[")[0].partition("@")[0]
        if is_module:  # else an example in a docstring
            file = f"{folders.replace('.', '/')}/{module}.py"
            found["::".join((file, *classes, test))].append(float(case.attrib["time"]))
    return found


def updated(costs: dict[str, float], seconds: dict[str, list[float]]) -> dict[str, float]:
    """Return the mean seconds of a case of the functions that exceed the budget, or did before."""
    means = {test: sum(each) / len(each) for test, each in seconds.items()}
    costly = {test for test, mean in means.items() if mean * len(seconds[test]) > BUDGET}
    return {test: round(means.get(test, costs.get(test, 0.0)), 2) for test in sorted(costs.keys() | costly)}


def main() -> None:
    """Measure, or read a report, and write the file."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "report.xml"
        if not report.exists():
            command = ["pytest", "--suite", "cases", "-n", "3", "--dist", "loadgroup", f"--junitxml={report}"]
            subprocess.run([sys.executable, "-m", *command], check=True)
        costs = updated(json.loads(COSTS.read_text(encoding="utf-8")), measured(report))
    COSTS.write_text(json.dumps(costs, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
