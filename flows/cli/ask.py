"""Commands about any problem: ask and methods."""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from flows.answers.ask import ask as ask_methods
from flows.answers.catalogue import catalogue, show_fields, show_matrix, show_methods, show_one
from flows.answers.question import answer_lines
from flows.answers.question import question as read_question
from flows.cli import options
from flows.cli.options import (
    Json,
    LimitBytes,
    LimitSeconds,
    MethodNames,
    finish,
    finish_all,
    named_methods,
)
from flows.printing import as_json, listed, say
from flows.spec.words import fields_from
from privcore import DomainError, Method

LONGEST_LINE = 1_000_000  # bytes of a question


def ask(
    problem: Annotated[
        str | None,
        typer.Argument(
            metavar="PROBLEM",
            help="Name of a problem; `privsweep methods` lists them.",
            autocompletion=options.problems,
        ),
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIELD=VALUE", help="Fields of the problem, such as sigma=1."),
    ] = None,
    method: MethodNames = None,
    batch: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File of JSON lines, or `-` for standard input; prints a JSON line for each."
        ),
    ] = None,
    limit_seconds: LimitSeconds = 300.0,
    limit_bytes: LimitBytes = 2e9,
    json: Json = False,
) -> None:
    """Bound any problem now, by all methods that apply or by the named methods."""
    from flows.answers import show as answers

    if (problem is None) == (batch is None):
        got = "none" if problem is None else f"both, {problem} and {batch}"
        raise DomainError(f"Expected either the name of a problem or --batch with a file, got {got}.")
    chosen = named_methods(method)
    if batch is not None:
        return _answer_batch(batch, chosen, limit_seconds, limit_bytes)
    assert problem is not None
    question = read_question({**fields_from(fields or []), "problem": problem}).problem
    asked = ask_methods(question, chosen, limit_seconds=limit_seconds, limit_bytes=limit_bytes)
    if json:
        say(as_json(asked.as_content()))
        return finish(asked)
    say(f"{question.name} {listed(question.as_fields())}")
    if asked.ok:
        wanted = chosen or answers.is_trivial(question, asked)
        answers.show_headline(question, asked, answers.estimates_of(asked) if wanted else {})
        if (likely := asked.likely()) is not None:
            say(answers.bracket_text(question, likely))
    answers.show_replies(asked)
    answers.show_conditions(question)
    return finish(asked)


def methods(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Name of a problem or method; default: a table of all.",
            autocompletion=options.problems_and_methods,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also print the fields of all problems.")] = False,
    json: Json = False,
) -> None:
    """List problems and the methods that bound them, or describe one problem or method."""
    if name is not None:
        if everything:
            raise DomainError("Expected a name or --all, got both.")
        show_one(name, json)
    elif json:
        say(as_json(catalogue(), indent=1))
    else:
        show_matrix()
        say()
        show_methods()
        if everything:
            say()
            show_fields()


def _answer_batch(path: Path, chosen: list[Method] | None, limit_seconds: float, limit_bytes: float) -> None:
    """Print one JSON line for each line of a file, as soon as it is known."""
    statuses: set[str] = set()
    with nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb") as lines:
        contents = answer_lines(_bounded(lines), chosen, limit_seconds=limit_seconds, limit_bytes=limit_bytes)
        for content in contents:
            say(as_json(content), flush=True)
            statuses.add(content["status"])
    finish_all(statuses)


def _bounded(lines: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file, or raise an error for a line that no question needs."""
    while line := lines.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise DomainError(f"Expected lines of at most {LONGEST_LINE} bytes, each a JSON object.")
        yield line
