"""The compose file against the schema of its format and its own promises; nothing is started."""

import json
import re
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from tests.deploy.manifests import DEPLOY, REPOSITORY, load

COMPOSE = load("compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = sorted(SERVICES.keys() - {"database"})
ONCE = "deployments"  # ends when everything is deployed
STARTED = sorted(name for name in SERVICES if "profiles" not in SERVICES[name] and name != ONCE)


def accept(said: dict[str, Any]) -> None:
    """Validate against the schema of the Compose Specification."""
    schema = files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    jsonschema.validate(said, json.loads(schema.read_text()))


def named_in_text() -> set[str]:
    return set(re.findall(r"\$\{([A-Z_]+)", (DEPLOY / "compose.yaml").read_text()))


def test_the_schema_of_compose_files_accepts_it() -> None:
    accept(COMPOSE)


def test_the_schema_finds_a_slip() -> None:
    with pytest.raises(jsonschema.ValidationError):
        accept(COMPOSE | {"services": {"a": {"image": "b", "command": {}}}})
    with pytest.raises(jsonschema.ValidationError):
        accept(COMPOSE | {"services": {"a": {"imagee": "b"}}})


def test_every_port_is_published_on_the_loopback_interface_alone() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert sorted(published) == ["127.0.0.1:4200:4200", "127.0.0.1:8265:8265"]
    assert not any(service.get("network_mode") for service in SERVICES.values())


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_service_has_bounds_and_few_rights(name: str) -> None:
    service = SERVICES[name]
    assert service["deploy"]["resources"]["limits"].keys() == {"cpus", "memory"}
    assert service["security_opt"] == ["no-new-privileges:true"]
    if name in OURS:
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]


@pytest.mark.parametrize("name", STARTED)
def test_every_service_that_stays_is_watched_and_restarted(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
    assert SERVICES[name]["restart"] == "unless-stopped"


def test_every_service_waits_until_what_it_needs_is_healthy() -> None:
    needs = {name: set(service.get("depends_on", {})) for name, service in SERVICES.items()}
    assert needs["prefect-server"] == {"database"}
    assert needs[ONCE] == {"prefect-server"}
    assert needs["prefect-worker"] == {"prefect-server", "ray-head"}
    assert needs["ray-node"] == {"ray-head"}
    for service in SERVICES.values():
        for other, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}
            assert other in STARTED


def test_every_volume_and_network_is_declared_and_used() -> None:
    mounted = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}
    assert {name for name in mounted if not name.startswith(".")} == COMPOSE["volumes"].keys()
    assert {network for service in SERVICES.values() for network in service["networks"]} == COMPOSE[
        "networks"
    ].keys()


def test_whoever_computes_or_reads_sees_the_same_store() -> None:
    for name in ("prefect-worker", "ray-head", "ray-node", "cli"):
        assert "work:/srv/privsweep" in SERVICES[name]["volumes"]


def test_every_container_of_ray_has_shared_memory_for_twice_its_objects() -> None:
    (objects,) = re.findall(r"^MEMORY=(\d+)", (DEPLOY / "role").read_text(), re.MULTILINE)
    for name in ("prefect-worker", "ray-head", "ray-node"):
        assert int(SERVICES[name]["shm_size"].removesuffix("m")) * 2**20 == 2 * int(objects)


def test_all_of_ray_asks_for_the_same_token() -> None:
    tokens = {
        (service["environment"]["RAY_AUTH_MODE"], service["environment"]["RAY_AUTH_TOKEN"])
        for name, service in SERVICES.items()
        if name not in ("database", "prefect-server", ONCE)
    }
    assert len(tokens) == 1
    assert tokens.pop()[0] == "token"


def test_secrets_are_in_an_environment_file_that_git_ignores() -> None:
    example = dict(
        line.split("=", 1)
        for line in (DEPLOY / "example.env").read_text().splitlines()
        if line and not line.startswith("#")
    )
    assert example.keys() == named_in_text()
    assert not any(example.values()), "a secret that is not set is an error, and one from a file is public"
    assert "/deploy/.env" in (REPOSITORY / ".gitignore").read_text().splitlines()


def test_a_missing_secret_is_said_in_a_sentence() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    for name in named_in_text():
        assert f"${{{name}:?Expected {name} in deploy/.env.}}" in text
