"""The schema of sweeps: it accepts every sweep that the reader accepts, and refuses most of the others."""

import json
import re
import tomllib
from copy import deepcopy
from random import Random
from typing import Any

import jsonschema
import pytest

from flows.spec.fields import fields_of
from flows.spec.grid import expand
from flows.spec.schema import TEXTS, schema
from flows.spec.sweep import embedded, from_spec
from flows.spec.toml import SweepError
from privcore import PROBLEMS, PrivsweepError, answering
from tests.flows.small_store import Command
from tests.flows.spec.mistakes import BEYOND, MISTAKES, Spec, good, grid, mistaken, product

ONE_SENTENCE = r"bad\.toml.*: .+[.?]"


@pytest.fixture(scope="module")
def validator() -> Any:
    return jsonschema.Draft202012Validator(schema())


def refusal(spec: Spec) -> str:
    """Return the sentence of the reader about a sweep, empty if it is accepted."""
    try:
        from_spec(deepcopy(spec), "bad.toml")
    except SweepError as error:
        return str(error)
    return ""


def test_every_embedded_sweep_is_valid(validator: Any) -> None:
    old = jsonschema.Draft7Validator(schema())  # as for editors that know only older drafts
    for file in embedded().values():
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        for each in (validator, old):
            assert [error.message for error in each.iter_errors(content)] == [], file.stem


@pytest.mark.thorough
def test_the_schema_is_a_schema_in_strict_json() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert json.loads(json.dumps(schema(), allow_nan=False)) == schema()


def test_the_good_sweeps_are_good(validator: Any) -> None:
    for kind in PROBLEMS:
        spec = json.loads(good(kind.name))
        assert not refusal(spec), kind.name
        assert validator.is_valid(spec), kind.name


def test_every_mistake_is_refused_by_the_schema_and_by_the_reader(validator: Any) -> None:
    made = 0
    for mistake in MISTAKES:
        specs = list(mistaken(mistake))
        assert specs, mistake.__name__
        made += len(specs)
        for spec in specs:
            sentence = refusal(spec)
            assert re.fullmatch(ONE_SENTENCE, sentence), (mistake.__name__, spec, sentence)
            assert not validator.is_valid(spec), (mistake.__name__, spec, sentence)
    assert len(MISTAKES) >= 100
    assert made >= 200


@pytest.mark.parametrize("what", BEYOND)
def test_what_a_schema_cannot_express_is_refused_by_the_reader(what: str, validator: Any) -> None:
    mistakes, words = BEYOND[what]
    for mistake in mistakes:
        specs = list(mistaken(mistake))
        assert specs, mistake.__name__
        for spec in specs:
            assert validator.is_valid(spec), (mistake.__name__, spec)
            sentence = refusal(spec)
            assert re.search(words, sentence), (mistake.__name__, sentence)
            assert re.fullmatch(ONE_SENTENCE, sentence), (mistake.__name__, sentence)


@pytest.mark.parametrize("condition", [None, "participations > steps"])
def test_fields_that_contradict_one_another_are_refused_when_points_are_made(
    condition: str | None, validator: Any
) -> None:
    spec = json.loads(good("unamplified-epsilon"))
    product(spec).update(steps=[10], participations=[20] if condition is None else [5])
    grid(spec).update({"where": condition} if condition else {})
    assert validator.is_valid(spec)
    with pytest.raises(PrivsweepError, match=r"grid 1: Expected .*where"):
        list(expand(from_spec(spec, "bad.toml").grids))


STRANGE: tuple[Any, ...] = (
    True, 0, -1, 1, 2, 2.5, 1e6, 1e300, "", "x", "inf", "1", [], [1], [0.5, 0.5], ["x"], {}, {"x": 1},
    {"name": "x"}, {"linear": [1, 2, 3]}, {"range": [1, 5, 2]}, {"geometric": [0.1, 0.5, 3]},
    {"linear": [1, 1e9, 1]},
)  # fmt: skip
"""Values that are right in some places."""


def shaken(spec: Any, random: Random) -> Any:
    """Return a sweep with one or two keys removed, renamed, copied or replaced anywhere."""
    spec = deepcopy(spec)
    for _ in range(random.randint(1, 2)):
        places: list[tuple[Any, Any]] = []
        nodes = [spec]
        for node in nodes:
            keys = list(node) if isinstance(node, dict) else range(len(node))
            places += [(node, key) for key in keys]
            nodes += [node[key] for key in keys if isinstance(node[key], dict | list)]
        node, key = random.choice(places)
        match random.randrange(5):
            case 0 if isinstance(node, dict):
                del node[key]
            case 1 if isinstance(node, dict):
                node[random.choice(["sigma", "steps", "zip", "where", "tolerance"])] = node.pop(key)
            case 2 if isinstance(node, list):
                node.append(node[key])
            case _:
                node[key] = deepcopy(random.choice(STRANGE))  # which a later change may fill
    return spec


def test_what_the_schema_refuses_the_reader_refuses_too_and_the_rest_is_listed(validator: Any) -> None:
    random = Random(21)
    listed = re.compile("|".join(words for _, words in BEYOND.values()))
    refused = 0
    for kind in PROBLEMS:
        for _ in range(8):
            spec = shaken(json.loads(good(kind.name)), random)
            sentence = refusal(spec)
            if not validator.is_valid(spec):
                refused += 1
                assert sentence, spec
            elif sentence:
                assert listed.search(sentence), (sentence, spec)
    assert refused >= 200


def test_an_editor_shows_what_is_wrong_and_where(validator: Any) -> None:
    spec = json.loads(good("unamplified-epsilon"))
    product(spec)["sigmma"] = product(spec).pop("sigma")
    product(spec)["delta"] = 2
    told = {(error.json_path, error.message) for error in validator.iter_errors(spec)}
    assert ("$.grid[0].product", "'sigma' is a required property") in told
    assert any(path == "$.grid[0].product" and "'sigmma' was unexpected" in text for path, text in told)
    assert any(path == "$.grid[0].product.delta" and text.startswith("2 is") for path, text in told)


def test_every_key_has_a_description_and_defaults_are_those_of_the_code() -> None:
    whole, parts = schema(), schema()["$defs"]
    keys = whole["properties"] | parts["grid"]["properties"]
    assert {key: part["description"] for key, part in keys.items()} == {
        key: text for key, text in TEXTS.items() if key != "sweep"
    }
    assert keys["limits"]["properties"]["point_seconds"]["default"] == 300
    assert parts["field.epochs"]["default"] == 1
    assert "Domain: {1, ..., 1000000}, unit epochs." in parts["field.epochs"]["description"]
    assert parts["options.allocation.certified"]["properties"]["tolerance"]["default"] == 0.001
    for kind in PROBLEMS:
        mine = parts[f"problem.{kind.name}"]["properties"]
        assert set(mine["product"]["properties"]) == set(fields_of(kind))
        assert set(mine["methods"]["items"]["then"]["enum"]) == {m.name for m in answering(kind)}
    for key, part in parts.items():
        assert key.startswith(("required.", "optional.")) or part["description"], key


def test_the_command_prints_the_schema(privsweep: Command) -> None:
    assert privsweep("schema") == 0
    assert privsweep.json == schema()
