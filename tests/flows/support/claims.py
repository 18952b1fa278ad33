"""Claims with our numbers: tables in the documentation whose queries are run again, and compared."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PRIVSWEEP = str(Path(sys.executable).with_name("privsweep"))


def unit(printed: str) -> float:
    """One unit of the last digit of a printed number.

    >>> unit("0.88"), unit("7.8e-09")
    (0.01, 1e-10)
    """
    exponent = Decimal(printed).as_tuple().exponent
    assert isinstance(exponent, int)
    return 10.0**exponent


def agree(values: Sequence[float], printed: str) -> bool:
    """Whether values are those that were printed, to a unit of the last digit."""
    numbers = printed.split(", ")
    return len(values) == len(numbers) and all(
        abs(value - float(number)) <= 1.001 * unit(number)
        for value, number in zip(values, numbers, strict=True)
    )


@dataclass(frozen=True)
class Claim:
    """A row of a table: the claim, our numbers, and the query or the test that gives them."""

    number: str
    claim: str
    what: str
    printed: str
    verdict: str
    kind: str
    name: str


class Claims:
    """The rows and the queries of a document."""

    def __init__(self, document: str) -> None:
        """Read a file of the documentation."""
        self.text = (ROOT / "docs" / document).read_text()
        self.queries: list[tuple[str, str, str]] = re.findall(
            r"```sql\n-- query (\d+) prints (.*)\n([^`]*)```", self.text
        )
        row = r"^\| (\d+) \| (.*) \| (.*): \*\*(.*)\*\* \| (.*) \| (query|test) (\S+) \|$"
        self.rows = [Claim(*found) for found in re.findall(row, self.text, re.MULTILINE)]

    def printed_of(self, test: str) -> str:
        """Return the numbers in the only row that names a test."""
        (printed,) = [row.printed for row in self.rows if (row.kind, row.name) == ("test", test)]
        return printed

    def check_rows(self, tests: Mapping[str, Callable[[], list[float]]]) -> None:
        """Check that rows are numbered, complete, and name their own query or one of the tests."""
        assert [int(row.number) for row in self.rows] == list(range(1, 1 + len(self.rows)))
        numbered = [line for line in self.text.splitlines() if re.match(r"\| \d", line)]
        assert len(self.rows) == len(numbered), set(numbered)
        for row in self.rows:
            assert min(map(len, (row.claim, row.what, row.printed, row.verdict))) > 0
            assert row.name == row.number if row.kind == "query" else row.name in tests
        assert {row.name for row in self.rows if row.kind == "test"} == tests.keys()

    def check_queries(self, at_least: int) -> None:
        """Check that every query has its row, prints numbers, and only selects."""
        rows = {row.number: row.printed for row in self.rows if row.kind == "query"}
        assert {number: shown for number, shown, _ in self.queries} == rows
        assert len(self.queries) >= at_least
        for number, printed, query in self.queries:
            assert all(math.isfinite(float(value)) for value in printed.split(", ")), number
            assert query.lstrip().startswith(("select", "with")), number

    def check_numbers(self, sweeps: Sequence[str], store: Path) -> None:
        """Compute the sweeps in a new store, and check that the queries print the numbers of the table."""
        option = ["--store", str(store)]
        for name in sweeps:
            _printed("run", name, *option)
        for number, printed, query in self.queries:
            values = [float(v) for v in json.loads(_printed("sql", *option, "--json", query))[0].values()]
            assert agree(values, printed), (number, values)


def _printed(*words: str) -> str:
    """Return the output of a command that ends well."""
    ended = subprocess.run([PRIVSWEEP, *words], check=False, capture_output=True, text=True)
    assert ended.returncode == 0, (words, ended.stderr)
    return ended.stdout
