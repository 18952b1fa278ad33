"""Checks that the table of seeded faults fits the source, and that a copy runs its seeded fault."""

import ast
from pathlib import Path

import pytest

from tests.mutations.checkout import Checkout
from tests.mutations.table import BEGIN, END, FAULTS, PAGE, ROOT, SUITES, Fault, faults, markdown, results

TABLE = faults()


def test_there_are_faults_in_every_package_and_no_two_are_the_same() -> None:
    assert len(TABLE) >= 64
    assert {fault.file.partition("/")[0] for fault in TABLE} == {"flows", "tasks", "storage", "privcore"}
    assert len({fault.name for fault in TABLE}) == len({fault.key for fault in TABLE}) == len(TABLE)


def test_every_fault_fits_its_file_once_and_leaves_a_program() -> None:
    for fault in TABLE:
        content = (ROOT / fault.file).read_text(encoding="utf-8")
        mutated = fault.applied(content)
        if fault.file.endswith(".py"):
            assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(content)), fault.name
        assert all((ROOT / path).exists() for path in fault.near), fault.name


def test_a_fragment_that_is_not_there_or_not_alone_is_refused() -> None:
    fault = Fault(name="", file="file.py", old="a", new="b")
    for content in ("", "a a"):
        with pytest.raises(ValueError, match="expected once"):
            fault.applied(content)


def test_results_are_those_of_faults_in_the_table() -> None:
    assert results().keys() <= {fault.key for fault in TABLE}, f"{FAULTS.name} has changed: run them again"
    assert all(of.keys() <= set(SUITES) for of in results().values())


def test_the_page_has_the_table_of_the_results() -> None:
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(f"{BEGIN}\n")
    assert rest.partition(f"\n{END}")[0] == markdown(), "python -m tests.mutations.run --table-only"


@pytest.mark.thorough
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a copy is made by git")
def test_a_copy_runs_the_seeded_fault_whatever_is_installed(tmp_path: Path) -> None:
    fault = Fault(
        name="An upper end is rounded down",
        file="flows/printing.py",
        old="return _rounded(x, digits, ROUND_CEILING)",
        new="return _rounded(x, digits, ROUND_FLOOR)",
    )
    shown = ["-I", "-c", "from flows import printing; print(printing.rounded_up(0.1), printing.__file__)"]
    copy = Checkout(tmp_path / "copy")
    module = copy.root / fault.file
    assert copy.run(shown) == (0, f"0.100001 {module}\n")
    with copy.seeded(fault):
        assert copy.run(shown) == (0, f"0.1 {module}\n")
    assert copy.run(shown) == (0, f"0.100001 {module}\n")
    assert module.read_bytes() == (ROOT / fault.file).read_bytes()
