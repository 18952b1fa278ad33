"""The reference of the commands is made from their help."""

import re

import pytest

from flows.cli.app import command
from tests.docs.commands import LISTED, PAGE, contents, section, written


def test_the_reference_is_that_of_the_commands() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page, "run python -m tests.docs.commands"


@pytest.mark.parametrize("words", LISTED)
def test_every_option_of_a_command_has_a_row_with_its_meaning(words: str) -> None:
    assert f"[`{words}`](#privsweep-{words.replace(' ', '-')})" in contents()
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]*) \| (.+) \|$", section(words), re.MULTILINE)
    shown = [name.partition(",")[0].partition(" ")[0] for name, _, _ in rows]
    expected = [each for each in command(words).params if not each.hidden]
    assert shown == [
        str(each.metavar or each.opts[0]) if each.opts[0][0] != "-" else each.opts[0] for each in expected
    ]
    assert all(meaning.endswith(".") and "<" not in name for name, _, meaning in rows)


def test_defaults_and_ranges_are_words() -> None:
    made = section("serve")
    assert "| `--port PORT` | `8730` | Port to listen on; 0 chooses a free port. From 0 to 65,535. |" in made
    assert "| `--store FOLDER` | `store` |" in made
    assert "| `NEW` | required |" in section("table diff")
