"""The pictures of the gallery are those of its commands."""

from pathlib import Path

import pytest

from flows.answers.training.palette import DARK, GROUNDS, LIGHT
from tests.docs.gallery import PAGE, PICTURES, commands, draw
from tests.flows.support.pictures import SHIFT, drawing, same_texts, texts

COMMANDS = list(commands())
ON_LIGHT = [words for words in COMMANDS if "--dark" not in words]


@pytest.mark.parametrize("words", ON_LIGHT, ids=lambda words: words[words.index("--out") + 1])
def test_a_picture_is_that_of_its_command(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    drawn = draw(words, tmp_path)
    made, committed = (path.read_text(encoding="utf-8") for path in (drawn, PICTURES / drawn.name))
    assert same_texts(made, committed), "run make picture"
    (form, numbers), (expected, others) = drawing(made), drawing(committed)
    assert form == expected
    assert numbers == pytest.approx(others, abs=SHIFT)


@pytest.mark.parametrize("words", ON_LIGHT, ids=lambda words: words[words.index("--out") + 1])
def test_a_dark_picture_differs_from_the_light_one_in_the_palette_alone(words: list[str]) -> None:
    name = words[words.index("--out") + 1]
    light, dark = ((PICTURES / each).read_text() for each in (name, name.replace("-light", "-dark")))
    colors = {GROUNDS["light"][part]: GROUNDS["dark"][part] for part in GROUNDS["light"]}
    for one, other in (colors | {LIGHT[word]: DARK[word] for word in LIGHT}).items():
        light = light.replace(one, other)
    assert texts(light) == texts(dark)
    assert drawing(light) == drawing(dark)  # hashes of marks depend on their colours


def test_every_picture_of_the_page_has_its_command() -> None:
    shown = {line.split("/")[1] for line in PAGE.read_text().splitlines() if line.startswith("```{image}")}
    drawn = {words[words.index("--out") + 1] for words in COMMANDS}
    assert shown == drawn | {"loaders-light.svg", "loaders-dark.svg"}  # these are tested with their sweep
