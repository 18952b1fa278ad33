"""Keys of many parts are refused before they are parsed; dots in texts and comments are not counted."""

import random
import tomllib
from pathlib import Path

import pytest

from flows.answers.question import run_question
from flows.spec.depth import DEEPEST, parsed
from flows.spec.sweep import parse
from flows.spec.toml import SweepError
from privcore import DomainError

DEEP = ".".join(["a"] * (DEEPEST + 1))
DOTS = "a." * 100


def test_a_sweep_with_a_key_of_twenty_thousand_parts_is_refused() -> None:
    with pytest.raises(SweepError, match=r"^x\.toml: Expected TOML in UTF-8 without .* deep nesting\.$"):
        parse(b"a." * 20_000 + b"b=1", "x.toml")


def test_a_run_with_a_key_of_twenty_thousand_parts_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_bytes(b"a." * 20_000 + b"b=1")
    with pytest.raises(DomainError, match=r"Expected keys of at most 20 parts, got more on line 1\.$"):
        run_question(str(file), {})


def test_a_run_of_nested_lists_is_refused_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("a = " + "[" * 5000 + "]" * 5000)
    with pytest.raises(DomainError, match=r"Expected TOML without deep nesting\.$"):
        run_question(str(file), {})


@pytest.mark.parametrize(
    "text",
    [
        f"{DEEP} = 1",
        f"[{DEEP}]",
        f"[[ {DEEP} ]]",
        f"x = {{{DEEP} = 1}}",
        f"x = [{{y = 1, {DEEP} = 1}}]",
        DEEP.replace("a", '"."') + " = 1",
        DEEP.replace(".", " . ").replace("a", "'#'") + " = 1",
        f"x = '\\'\n{DEEP} = 1",
        f'x = "\\""\n{DEEP} = 1',
        f'x = """a"""""\n{DEEP} = 1',
        f"x = '''a''''\n{DEEP} = 1",
        f'x = ""\n{DEEP} = 1',
        f"# '''\n{DEEP} = 1",
    ],
)
def test_a_deep_key_is_refused_wherever_it_is(text: str) -> None:
    assert tomllib.loads(text)
    with pytest.raises(ValueError, match="Expected keys of at most 20 parts"):
        parsed(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        f"# {DOTS}\nx = 1 # {DOTS}",
        f"x = '{DOTS}'",
        f'x = "{DOTS} \\" {DOTS}"',
        f'x = """{DOTS}\n{DOTS}"\\""{DOTS}"""""',
        f"x = '''{DOTS}\n'{DOTS}''{DOTS}'''''",
        f"'{DOTS}' = 1",
        "x = [" + "1.5, " * 100 + "]",
        "\n".join(f"a.b{n} = 1.5" for n in range(100)),
        ".".join(["a"] * DEEPEST) + " = 1",
    ],
)
def test_dots_in_texts_comments_and_numbers_are_accepted(text: str) -> None:
    assert parsed(text.encode()) == tomllib.loads(text)


def test_no_text_that_a_parser_accepts_hides_a_deep_key() -> None:
    pieces = ['"', "'", '"""', "'''", "\\", "#", "\n", "x", "."]
    chance = random.Random(1)
    accepted = 0
    for _ in range(20_000):
        quote = chance.choice(pieces[:4])
        text = f"x = {quote}{''.join(chance.choices(pieces, k=chance.randrange(6)))}{quote}\n"
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        accepted += 1
        assert parsed(text.encode()) == content
        with pytest.raises(ValueError, match="Expected keys"):
            parsed(f"{text}{DEEP} = 1".encode())
    assert accepted > 1000
