"""Writes the seconds of costly test functions from a report of pytest: `python -m tests.costs report.xml`.

All tests with all their cases run, in hours, by `pytest --suite cases -n 3 --dist loadgroup
--junitxml=report.xml -o junit_duration_report=call`. After a part of them, only their numbers change.
"""

import json
import sys
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


if __name__ == "__main__":
    known = json.loads(COSTS.read_text(encoding="utf-8"))
    new = updated(known, measured(Path(sys.argv[1])))
    COSTS.write_text(json.dumps(new, indent=1) + "\n", encoding="utf-8")
