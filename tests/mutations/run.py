"""Seeds each fault of the table in a copy of the checkout and runs a suite: `python -m tests.mutations.run`.

The nearest tests run first, the rest only if they do not notice the fault. The first test that fails is kept
in results.json, and the table in docs/testing.md is written again.
"""

import argparse
import fcntl
import json
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mutations.checkout import Checkout
from tests.mutations.table import RESULTS, ROOT, SUITES, Fault, faults, keep, results, write_page

OPTIONS = {"test": ["--suite", "sample"], "test-all": ["--suite", "all"], "soak": ["-m", "soak"]}
"""Options of pytest that select a suite."""

LOCK = RESULTS.with_suffix(".lock.tmp")
OWN = "tests/mutations"
"""The tests of the table itself, which notice every fault."""
NOTHING_SELECTED = 5  # exit status of pytest if there is no test in a folder


def stages(fault: Fault, *, near_only: bool) -> Iterator[list[str]]:
    """Yield the paths of consecutive runs, as arguments of pytest.

    The near tests, the examples in the file, the tests of its folder, those of its package, then the rest.
    """
    folder = Path(fault.file).parent
    above = [f"tests/{part}" for part in (folder, *folder.parents) if part != Path()]
    above = [path for path in above if (ROOT / path).is_dir()]
    seen: list[str] = []
    examples = [fault.file] if fault.file.endswith(".py") else []
    for path in [*fault.near, *examples, *(above[: not fault.near] if near_only else above)]:
        if path not in seen:
            yield [path, *(f"--ignore={each}" for each in seen if each.startswith(f"{path}/"))]
            seen.append(path)
    if near_only:
        return
    yield [f"--ignore={each}" for each in (*seen, OWN)]


def caught_by(
    copy: Checkout, fault: Fault, suite: str, *, near_only: bool, limit: float, workers: int
) -> tuple[str, str]:
    """Return the test of a suite that notices a fault, "" if there is none, and why it fails."""
    with copy.seeded(fault), tempfile.TemporaryDirectory() as scratch:
        for number, stage in enumerate(stages(fault, near_only=near_only)):
            witness = Path(scratch) / f"{number}.json"
            one_file = stage[0].endswith((".py", ".js"))
            spread = [] if one_file or workers < 2 else ["-n", str(workers), "--dist", "loadgroup"]
            command = ["-m", "pytest", "-x", "-q", "-p", "tests.mutations.witness"]
            status, output = copy.run(
                [*command, *OPTIONS[suite], *spread, *stage], limit, PRIVSWEEP_WITNESS=str(witness)
            )
            if witness.exists():
                found = json.loads(witness.read_text(encoding="utf-8"))
                return found["test"], found["why"]
            if status is None:  # on a busy machine that says nothing about the fault
                raise TimeoutError
            if status not in (0, NOTHING_SELECTED):
                return f"pytest, which ends with status {status}", output[-2000:]
    return "", ""


def sampled(copy: Checkout) -> set[str]:
    """Return the names of the tests of `make test` that are the same in `make test-all`.

    A test is left out if its loop takes a part of its cases in a sample, since it may pass there.
    """
    _, output = copy.run(["-m", "pytest", "--collect-only", "-q", *OPTIONS["test"]])
    names = {line for line in output.splitlines() if "::" in line}
    files = {name.partition("::")[0] for name in names}
    shorter = {f for f in files if "tests.suites import" in (copy.root / f).read_text(encoding="utf-8")}
    return {name for name in names if name.partition("::")[0] not in shorter}


def control(copy: Checkout, limit: float) -> int:
    """Run the catching tests in a copy without a fault; return how many files have a test that fails."""
    by_file: dict[str, set[str]] = defaultdict(set)
    for of in results().values():
        for test in of.values():
            if "::" in test:
                by_file[test.partition("::")[0]].add(test.partition("@")[0])
    wrong = 0
    for file, tests in sorted(by_file.items()):
        status, output = copy.run(["-m", "pytest", "-q", "-m", "", *sorted(tests)], limit)
        wrong += status != 0
        print(
            f"{file}: {len(tests)} tests {'pass' if status == 0 else f'FAIL: {output[-2000:]}'}", flush=True
        )
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a suite against faults; return 1 if one of them is not caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations.run", description=__doc__)
    parser.add_argument("--suite", choices=SUITES, default="test", help="the suite to run (default: test)")
    parser.add_argument("--only", default="", help="run faults whose name or file matches this expression")
    parser.add_argument("--again", action="store_true", help="run faults that have a result, too")
    parser.add_argument(
        "--near-only", action="store_true", help="run the near tests alone, or those of the folder"
    )
    parser.add_argument("--limit", type=float, default=1800.0, help="time of one run of pytest, in seconds")
    parser.add_argument("--workers", type=int, default=2, help="processes for large folders (default: 2)")
    parser.add_argument("--log", type=Path, help="folder for the output of failing tests")
    parser.add_argument("--table-only", action="store_true", help="write the table and run nothing")
    parser.add_argument("--control", action="store_true", help="run the catching tests without any fault")
    given = parser.parse_args(arguments)
    if given.table_only:
        write_page()
        return 0
    chosen = [
        fault
        for fault in faults()
        if re.search(given.only, f"{fault.name} {fault.file}")
        and (given.again or given.suite not in results().get(fault.key, {}))
    ]
    escaped = 0
    with tempfile.TemporaryDirectory(prefix="pm-") as scratch:
        copy = Checkout(Path(scratch) / "copy")
        if given.control:
            return int(control(copy, given.limit) > 0)
        sample = sampled(copy) if given.suite == "test" and chosen else set()
        for fault in chosen:
            began = time.monotonic()
            if (known := results().get(fault.key, {}).get("test-all", "")) in sample:
                _note(fault, given.suite, known)  # the same test would fail again
                print(f"         {fault.name}: {known} is in the sample", flush=True)
                continue
            try:
                test, why = caught_by(
                    copy,
                    fault,
                    given.suite,
                    near_only=given.near_only,
                    limit=given.limit,
                    workers=given.workers,
                )
            except TimeoutError:
                escaped += 1
                print(f"{given.limit:6.0f} s  {fault.name}: no result within the limit", flush=True)
                continue
            escaped += not test
            print(f"{time.monotonic() - began:6.0f} s  {fault.name}: {test or 'NOT CAUGHT'}", flush=True)
            if given.log and test:
                given.log.mkdir(parents=True, exist_ok=True)
                (given.log / f"{fault.key}.txt").write_text(f"{fault.name}\n{test}\n{why}", encoding="utf-8")
            if test or not given.near_only:
                _note(fault, given.suite, test)
    write_page()
    return int(escaped > 0)


def _note(fault: Fault, suite: str, test: str) -> None:
    """Keep a result; a test of `make test` is a test of `make test-all`."""
    with LOCK.open("w") as lock:  # several runs may be at work
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = results()
        of = known.setdefault(fault.key, {})
        of[suite] = test
        if suite == "test" and test:
            of["test-all"] = test
        keep(known)


if __name__ == "__main__":
    sys.exit(main())
