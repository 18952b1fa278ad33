"""The files of deploy/, with the facts about them that the tests need."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

REPOSITORY = Path(__file__).resolve().parents[2]
DEPLOY = REPOSITORY / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
ELSEWHERE = ("prefect.yaml", "schedule.py", "automations.yaml", "automations.py")  # have tests of their own
VERSION = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
IMAGE = f"privsweep:{VERSION}"
PINNED = dict(
    re.findall(r"^([a-z0-9._-]+)==(\S+)", (REPOSITORY / "requirements.lock").read_text(), re.MULTILINE)
)


def load(name: str) -> dict[str, Any]:
    """Return the content of a YAML file of deploy/; a key given twice is an error."""
    said = YAML(typ="safe", pure=True).load(DEPLOY / name)
    assert isinstance(said, dict)
    return said


def manifests() -> list[str]:
    """Return the files that are here, relative to deploy/."""
    files = (path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return sorted(str(path.relative_to(DEPLOY)) for path in files if path.name not in (*ELSEWHERE, ".env"))


def walk(said: Any) -> Iterator[dict[str, Any]]:
    """Yield every mapping in something that was read, the outermost first."""
    if isinstance(said, dict):
        yield said
    for inner in said.values() if isinstance(said, dict) else said if isinstance(said, list) else ():
        yield from walk(inner)


def environment(said: Any) -> dict[str, str]:
    """Return all environment variables of a Kubernetes object, of values for a chart or of a compose file."""
    found: dict[str, str] = {}
    for mapping in walk(said):
        for key in ("env", "extraEnvVars"):
            if isinstance(listed := mapping.get(key), list):
                found |= {one["name"]: str(one.get("value", "")) for one in listed}
        if isinstance(listed := mapping.get("environment"), dict):
            found |= {name: str(value) for name, value in listed.items()}
    return found
