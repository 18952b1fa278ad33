"""Files for those who cite, reuse or report: citation, licences, and their copies in sdist and wheel."""

import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

APACHE = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
"""SHA-256 of the text of the Apache License 2.0, as the Apache Software Foundation publishes it."""


@pytest.fixture(scope="module")
def citation(repository: Path) -> Any:
    return yaml.safe_load((repository / "CITATION.cff").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def schema() -> Any:
    kept = files("check_jsonschema") / "builtin_schemas" / "vendor" / "citation-file-format.json"
    return json.loads(kept.read_text())


def test_the_citation_is_valid_and_names_this_version(citation: Any, schema: Any) -> None:
    jsonschema.validate(citation, schema)
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == version("privsweep")


@pytest.mark.parametrize("field", ["authors", "title", "message"])
def test_a_citation_without_a_required_field_is_invalid(field: str, citation: Any, schema: Any) -> None:
    with pytest.raises(jsonschema.ValidationError, match=field):
        jsonschema.validate({name: value for name, value in citation.items() if name != field}, schema)


def test_the_licence_is_the_standard_text_and_named_in_the_citation(citation: Any, repository: Path) -> None:
    assert sha256((repository / "LICENSE").read_bytes()).hexdigest() == APACHE
    licence = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["license"]
    assert citation["license"] == "Apache-2.0"
    assert licence.startswith("Apache-2.0")


def test_every_licence_in_the_packages_is_in_the_metadata(repository: Path) -> None:
    named = set(tomllib.loads((repository / "pyproject.toml").read_text())["project"]["license-files"])
    packages = ("flows", "tasks", "storage", "privcore")
    found = {file for package in packages for file in (repository / package).rglob("LICEN[CS]E*")}
    assert named == {"LICENSE"} | {file.relative_to(repository).as_posix() for file in found}


def test_reports_go_to_no_address_and_count_false_bounds(repository: Path) -> None:
    text = (repository / "SECURITY.md").read_text()
    assert "A false bound" in text
    assert not re.search(r"://|\S@\S", text)


@pytest.mark.thorough
def test_sdist_and_wheel_contain_the_licence(repository: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run(build, cwd=repository, check=True, capture_output=True)
    (sdist,), (wheel,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "CITATION.cff", "SECURITY.md", "README.md", "pyproject.toml"} <= inside
    assert not any(name.startswith("tests/") for name in inside)
    with zipfile.ZipFile(wheel) as package:
        names = package.namelist()
        info = next(name for name in names if name.endswith(".dist-info/METADATA")).removesuffix("METADATA")
        metadata = Parser().parsestr(package.read(f"{info}METADATA").decode())
        assert {"flows/vectors/vectors.jsonl", "flows/page/static/index.html"} <= set(names)
        tables = {Path(name).suffix for name in names if name.startswith("storage/table/lookup-")}
        assert tables == {".json", ".parquet"}
        assert package.read(f"{info}licenses/LICENSE") == (repository / "LICENSE").read_bytes()
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
