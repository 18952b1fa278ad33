"""The table of seeded faults, the results of the last runs, and their Markdown."""

import hashlib
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAULTS = Path(__file__).with_name("faults.toml")
RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "testing.md"

SUITES = ("test", "test-all", "soak")
"""Targets of the Makefile that run tests. `test-all` includes all that `test` runs; `soak` stands alone."""

BEGIN, END = "<!-- begin mutations -->", "<!-- end mutations -->"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A mistake that somebody could make.

    Attributes:
        name: A sentence about the faulty product.
        file: The source file, relative to the root of the checkout.
        old: A fragment of the source that occurs once in the file.
        new: Replacement of the fragment.
        near: Test files or folders to run first.
    """

    name: str
    file: str
    old: str
    new: str
    near: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Hash of the change; a result belongs to a fault with the same key."""
        return hashlib.sha256("\0".join((self.file, self.old, self.new)).encode()).hexdigest()[:16]

    def applied(self, content: str) -> str:
        """Return the content of the file with the fault in it.

        Raises:
            ValueError: The fragment does not occur exactly once.
        """
        count = content.count(self.old)
        if count != 1:
            raise ValueError(f"{self.file} has {self.old!r} {count} times, expected once.")
        return content.replace(self.old, self.new)


def faults() -> list[Fault]:
    """Return all faults of the table, in its order."""
    rows = tomllib.loads(FAULTS.read_text(encoding="utf-8"))["fault"]
    return [Fault(**{**row, "near": tuple(row.get("near", ()))}) for row in rows]


def results() -> dict[str, dict[str, str]]:
    """Return by key of a fault and by suite the test that caught it, "" for none."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def keep(found: dict[str, dict[str, str]]) -> None:
    """Write the results of faults that are still in the table, in its order."""
    kept = {fault.key: found[fault.key] for fault in faults() if fault.key in found}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def markdown() -> str:
    """Return the table of faults and of the tests that catch them."""
    known = results()
    lines = [
        "| fault | file | caught by `make test` | caught by `make test-all` | caught by `make soak` |",
        "|---|---|---|---|---|",
    ]
    table = faults()
    for fault in table:
        of = known.get(fault.key, {})
        cells = [fault.name, f"`{fault.file}`", *(_cell(of, suite) for suite in SUITES)]
        lines.append("| " + " | ".join(cells) + " |")
    counts = {s: sum(bool(known.get(fault.key, {}).get(s)) for fault in table) for s in SUITES}
    total = len(table)
    summary = ", ".join(f"`make {suite}` catches {count}" for suite, count in counts.items())
    return "\n".join([f"Of {total} seeded faults, {summary}.", "", *lines])


def _cell(of: dict[str, str], suite: str) -> str:
    if suite not in of:
        return "not run"
    test = of[suite]
    if suite == "test-all" and test and test == of.get("test"):
        return "same"
    return f"`{_short(test)}`" if test else "no"


def _short(test: str) -> str:
    """Return the file and function of a test, without its parameters."""
    path, _, name = test.partition("::")
    return f"{path.rpartition('/')[2]}::{name.partition('[')[0]}" if name else path


def write_page() -> None:
    """Put the table between the markers of the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{markdown()}\n{END}{after}", encoding="utf-8")
