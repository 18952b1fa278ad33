"""Exit codes: documented, reachable, and written down in one place."""

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import flows.runs.run
from flows.cli.app import _Interrupts, app, run
from flows.runs.status import Coverage
from privcore import ExitCode

DOCUMENTED = {code.value for code in ExitCode}
NAMES = {*ExitCode.__members__, "EXIT_CODE"}


def numbers_in(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that hold an exit code as a number: a constant, an attribute, the end of a command."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.upper() in NAMES:
                values = value.elts if isinstance(value, ast.Tuple) else [value]
                numbers = [each for each in values if is_number(each)]
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                numbers = [
                    each
                    for name, each in zip(names, values, strict=True)
                    if isinstance(name, ast.Name) and name.id in NAMES and is_number(each)
                ]
            case ast.Call(func=ast.Attribute(attr="Exit" | "_exit" | "exit"), args=values):
                numbers = [each for each in values if is_number(each)]
            case _:
                continue
        yield from (number.lineno for number in numbers)


def is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def test_the_enum_is_the_only_place_with_the_numbers(repository: Path) -> None:
    found = {
        str(path.relative_to(repository))
        for folder in ("flows", "tasks", "storage", "privcore", "privsweep")
        for path in (repository / folder).rglob("*.py")
        if list(numbers_in(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert found == {
        "privcore/errors.py",  # the enum
        "tasks/own_process.py",  # a child whose parent has exited: its code is not read
    }


def test_a_number_elsewhere_would_be_found() -> None:
    for line in ("FAILED = 1", "class E:\n  exit_code = 3", "FAILED, LIMIT = 1, 4", "raise typer.Exit(1)"):
        assert list(numbers_in(ast.parse(line))), line


def test_help_and_documentation_list_the_codes(repository: Path) -> None:
    epilog = str(app.info.epilog)
    assert {int(number) for number in re.findall(r"\d+", epilog)} == DOCUMENTED
    table = re.findall(
        r"^\| (\d+) \|", (repository / "docs/commands.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {int(number) for number in table} == DOCUMENTED
    (sentence,) = re.findall(
        r"^Exit codes are .*?\.$",
        (repository / "docs/howto.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert {int(number) for number in re.findall(r"\d+", sentence)} == DOCUMENTED


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["ask", "unamplified-epsilon", "sigma=1", "delta=1e-5"], ExitCode.DONE),
        (
            [
                "membership",
                "--epsilon",
                "0.01",
                "--delta",
                "0",
                "--adjacency",
                "add-remove",
                "--attack",
                "1000",
                "1000",
                "0",
                "1000",
            ],
            ExitCode.FAILED,
        ),
        (["frobnicate"], ExitCode.MISUSE),
        (["lookup", "unamplified-epsilon", "sigma=1", "delta=1e-5"], ExitCode.UNCOVERED),
        (
            ["ask", "unamplified-epsilon", "sigma=1", "delta=1e-5", "--limit-seconds", "0"],
            ExitCode.LIMIT,
        ),
        (["run", "quickstart", "--ray-address", "127.0.0.1:1"], ExitCode.GONE),
        (["run", "quickstart"], ExitCode.INTERRUPTED),
    ],
)
def test_every_code_is_reached_as_documented(
    arguments: list[str],
    code: ExitCode,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    if code is ExitCode.INTERRUPTED:
        monkeypatch.setattr(flows.runs.run, "run", interrupted)
    assert run(arguments) == code


def test_an_error_of_a_library_that_ctrl_c_interrupted_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def query(*_: object, **__: object) -> None:
        with suppress(KeyboardInterrupt):
            _Interrupts.note(2, None)
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr(_Interrupts, "came", False)
    monkeypatch.setattr(flows.runs.run, "run", query)
    assert run(["run", "quickstart"]) == ExitCode.INTERRUPTED


@pytest.mark.parametrize(("status", "code"), [("ok", ExitCode.DONE), ("timeout", ExitCode.UNANSWERED)])
def test_a_run_exits_with_6_exactly_if_points_have_failed(
    status: str, code: ExitCode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    now = Coverage(sweep="quickstart", total=1, statuses={status: 1})
    report = flows.runs.run.RunReport(now=now, before=0, computed=1, seconds=1.0, store="store")
    monkeypatch.setattr(flows.runs.run, "run", lambda *_, **__: report)
    monkeypatch.chdir(tmp_path)
    assert run(["run", "quickstart"]) == code
