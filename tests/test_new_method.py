"""The example of CONTRIBUTING.md, added to the registry: it is asked, listed, and held to the contract."""

import importlib.util
import inspect
import re
import sys
from pathlib import Path

import pytest

from privcore import METHODS, Answer, Method, Problem
from privcore.registry import registered
from tests.flows.small_store import Command
from tests.privcore import test_contract, test_registry

QUESTION = ("poisson-delta", "sigma=1", "steps=10", "sampling_probability=0.5", "epsilon=1")
ELSEWHERE = (
    "test_every_method_meets_problems_to_which_it_applies",  # of all problems
    "test_the_same_point_gives_the_same_bits_in_a_fresh_process_in_another_order",  # with its own registry
)


@pytest.fixture
def method(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Method]:
    """The class of the example, from a file of its own, as a contributor writes it."""
    text = (repository / "CONTRIBUTING.md").read_text()
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "(Method[" in block)
    file = tmp_path / "unsampled.py"
    file.write_text(code)
    spec = importlib.util.spec_from_file_location("unsampled", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "unsampled", module)  # where a dataclass looks for its annotations
    spec.loader.exec_module(module)
    found: type[Method] = module.PoissonUnsampled
    return found


def drawn(kind: type[Problem]) -> list[test_contract.Draw]:
    """Return the answers of cheap methods, the new one included, to problems of a kind."""
    return test_contract.sample(kind, 1, budget=0.1, affordable=0.5)


def test_a_new_method_is_asked_and_listed_while_the_registry_has_it(
    method: type[Method], capsys: pytest.CaptureFixture[str]
) -> None:
    command = Command(capsys)
    with registered(method):
        assert command("ask", *QUESTION, "--method", method.name, "--json") == 0, command.err
        (said,) = command.json["methods"]
        assert (said["name"], said["status"], said["detail"]) == (method.name, "ok", "closed form")
        assert command("methods", method.name) == 0, command.err
        assert "Every step uses every example" in command.out
        assert command("methods", "--json") == 0, command.err
        assert method.name in {entry["name"] for entry in command.json["methods"]}
    assert command("ask", *QUESTION, "--method", method.name) == 2
    assert f"Unknown method {method.name}" in command.err
    assert method not in METHODS


def test_a_new_method_is_held_to_the_contract_of_all_methods(method: type[Method]) -> None:
    checks = [
        (check, inspect.signature(check).parameters)
        for name, check in vars(test_contract).items()
        if name.startswith("test_") and name not in ELSEWHERE
    ]
    checks = [(check, needed) for check, needed in checks if needed.keys() <= {"draws", "method", "kind"}]
    assert len(checks) >= 10
    (kind,) = method.problems
    with registered(method):
        test_registry.test_a_method_makes_its_claims(method)
        draws = drawn(kind)
        assert sum(type(draw.method) is method and draw.answer.ok for draw in draws) > 20
        values = {"draws": draws, "method": method, "kind": kind}
        for check, needed in checks:
            check(**{name: values[name] for name in needed})


def test_the_contract_notices_a_new_method_that_proves_too_much(
    method: type[Method], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(method, "answer", lambda *_: Answer.at_most(0.0, detail="a mistake"))
    with registered(method), pytest.raises(AssertionError, match="a mistake"):
        test_contract.test_the_enclosures_of_a_problem_intersect(drawn(method.problems[0]))
