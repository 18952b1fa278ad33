"""No sampler is assumed: every question about a training run names it, or is refused with the loaders."""

from pathlib import Path

import pytest

import privsweep as ps
from flows.answers.parse import LOADERS, SAMPLING, UNKNOWN
from privcore.errors import ChoiceError
from tests.flows.small_store import Command

RUN = ("--steps", 100, "--delta", 1e-5)
DOORS = (("epsilon", "--sigma", 1), ("noise", "--epsilon", 1), ("profile", "--sigma", 1))


def test_every_sampler_has_a_loader() -> None:
    assert LOADERS.keys() == SAMPLING.keys()


def test_the_document_lists_the_same_loaders() -> None:
    page = (Path(__file__).parents[3] / "docs" / "training-runs.md").read_text(encoding="utf-8")
    assert "".join(f"| {code} | `{sampling}` |\n" for sampling, code in LOADERS.items()) in page


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door[0])
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "privsweep: Expected --sampling, since the answer depends on the loader:"),
        (("--sampling", "dice"), "privsweep: Expected --sampling with one of these words, got 'dice':"),
    ],
)
def test_a_command_without_a_sampler_lists_the_loaders(
    privsweep: Command, door: tuple[object, ...], words: tuple[str, ...], sentence: str
) -> None:
    assert privsweep(*door, *RUN, *words) == 2
    assert privsweep.out == ""
    first, *lines = privsweep.err.splitlines()
    assert first == sentence
    assert [line.split()[0] for line in lines] == [*LOADERS, UNKNOWN]
    assert all(len(line) <= 80 for line in (first, *lines))
    for code in ("DataLoader(shuffle=True)", "poisson_sampling=True", "`privsweep compare`"):
        assert code in privsweep.err


def test_python_without_a_sampler_lists_the_loaders() -> None:
    for asked in (
        lambda: ps.epsilon(sigma=1.0, steps=100, delta=1e-5),
        lambda: ps.noise(epsilon=1.0, steps=100, delta=1e-5),
    ):
        with pytest.raises(ps.DomainError) as caught:
            asked()
        assert isinstance(caught.value, ChoiceError)
        assert str(caught.value).startswith("Expected sampling, since the answer depends on the loader:\n  s")
        assert all(code in str(caught.value) for code in LOADERS.values())
