"""The page of public questions: at least twenty threads, each with a command and its output."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import Step, steps

THREAD = re.compile(r"[\w.-]+(?:/[\w.-]+)?#\d+")
ENTRY = re.compile(r"^\*\*(.+)\*\* \((.+)\)\n```console\n((?:.*\n)*?)```\n(.+)\n", re.MULTILINE)

Entry = tuple[str, list[str], list[Step], str]


@pytest.fixture(scope="module")
def entries(repository: Path) -> list[Entry]:
    """Question, threads, commands and meaning of each entry."""
    text = (repository / "docs" / "questions.md").read_text(encoding="utf-8")
    found = [(q, t.split(", "), list(steps(c, 1)), m) for q, t, c, m in ENTRY.findall(text)]
    assert len(found) == text.count("```console") == len(re.findall(r"^\*\*", text, re.MULTILINE))
    return found


def test_at_least_twenty_questions_have_a_thread_and_a_command(entries: list[Entry]) -> None:
    assert len(entries) >= 20
    assert all(THREAD.fullmatch(thread) for _, threads, _, _ in entries for thread in threads)
    assert all(1 <= len(commands) <= len(threads) for _, threads, commands, _ in entries)


def test_no_thread_and_no_command_is_answered_twice(entries: list[Entry]) -> None:
    threads = [thread for _, named, _, _ in entries for thread in named]
    commands = [step.command for _, _, played, _ in entries for step in played]
    assert len(set(threads)) == len(threads)
    assert len(set(commands)) == len(commands)


def test_each_answer_shows_a_number_of_the_output(entries: list[Entry]) -> None:
    for question, _, commands, _ in entries:
        for step in commands:
            assert step.command.startswith("privsweep ")
            assert re.search(r"\d", step.shown), question
