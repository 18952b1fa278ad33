"""The page on the format of sweeps shows every key, problem, field and option that the code declares."""

from pathlib import Path

import pytest

from privcore import METHODS, PROBLEMS
from tests.docs.sweeps import PAGE, SQL, tables, written


@pytest.mark.parametrize("page", [PAGE, SQL], ids=lambda page: page.name)
def test_the_tables_of_the_page_are_made_from_the_code(page: Path) -> None:
    assert written(page) == page.read_text(encoding="utf-8"), "run python -m tests.docs.sweeps"


def test_every_field_and_option_has_a_row() -> None:
    made = tables()
    for kind in PROBLEMS:
        assert f"\n`{kind.name}`: " in made["problems"]
        for name in kind.parameters:
            assert f"| `{name}` | " in made["fields"]
    for method in METHODS:
        assert all(f"| `{name}` | " in made["options"] for name in method.knobs)
        assert not method.knobs or f"| `{method.name}` | " in made["options"]
