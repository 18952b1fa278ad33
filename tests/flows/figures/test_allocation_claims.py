"""The numbers in docs/reproduction-allocation.md against the output of its queries on a new store."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.support.claims import made

ROOT = Path(__file__).resolve().parents[3]
PRIVSWEEP = str(Path(sys.executable).with_name("privsweep"))
QUERIES = re.findall(
    r"```sql\n-- query (\d+) prints (.*)\n([^`]*)```", (ROOT / "docs/reproduction-allocation.md").read_text()
)


def test_every_query_has_its_row_in_the_table() -> None:
    text = (ROOT / "docs/reproduction-allocation.md").read_text()
    for number, printed, _ in QUERIES:
        row = next(line for line in text.splitlines() if line.startswith(f"| {number} |"))
        assert f"**{printed}**" in row
        assert row.endswith(f"| query {number} |")
    assert len(QUERIES) >= 10


def test_make_runs_the_sweeps_of_the_nine_figures() -> None:
    assert made("allocation") == [f"allocation-figure{number}" for number in range(1, 10)]


@pytest.mark.soak
def test_the_queries_print_the_numbers_of_the_table(tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "store")]
    for number in range(1, 10):
        subprocess.run(
            [PRIVSWEEP, "run", f"allocation-figure{number}", *store], check=True, capture_output=True
        )
    for number, printed, query in QUERIES:
        found = subprocess.run(
            [PRIVSWEEP, "sql", *store, "--json", query], check=True, capture_output=True, text=True
        )
        values = list(json.loads(found.stdout)[0].values())
        assert values == pytest.approx([float(value) for value in printed.split(", ")], rel=0.02), number
