"""Structure of the project: packages, lock file and import contracts."""

import ast
import importlib
import json
import re
import tomllib
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

PACKAGES = ("flows", "tasks", "storage", "privcore", "privsweep")


@pytest.fixture(scope="module")
def pyproject(repository: Path) -> dict[str, Any]:
    return tomllib.loads((repository / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def lock(repository: Path) -> str:
    return (repository / "requirements.lock").read_text()


def pinned(lock: str) -> dict[str, str]:
    """Name and version of every requirement in the lock that this interpreter installs."""
    lines = map(Requirement, re.findall(r"^[a-z0-9._-]+==[^\\\n]+", lock, re.MULTILINE))
    needed = [line for line in lines if line.marker is None or line.marker.evaluate()]
    return {line.name: str(line.specifier).removeprefix("==") for line in needed}


@pytest.mark.parametrize("name", PACKAGES)
def test_no_other_distribution_shadows_our_packages(name: str, repository: Path) -> None:
    module = importlib.import_module(name)
    assert module.__file__ is not None
    assert Path(module.__file__).resolve().is_relative_to(repository / name)


def test_no_two_classes_have_the_same_name(repository: Path) -> None:
    files = (file for name in PACKAGES for file in (repository / name).rglob("*.py"))
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert [name for name, times in names.items() if times > 1] == []


def test_every_locked_requirement_has_a_version_and_a_hash(lock: str) -> None:
    blocks = [block for block in re.split(r"\n(?=\S)", lock) if not block.startswith("#")]
    assert len(blocks) > 50
    for block in blocks:
        assert re.match(r"[a-z0-9._-]+==\S+( ; [^\\\n]+)? \\\n", block), block.splitlines()[0]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block.splitlines()[0]


def test_lock_names_no_host_and_no_path(lock: str) -> None:
    assert "://" not in lock
    assert "/" not in lock
    options = set(re.findall(r"--([a-z-]+)", lock))
    assert options == {"hash", "no-deps", "require-hashes"}, "no index and no folder of wheels"


def test_every_direct_dependency_is_locked(lock: str, pyproject: dict[str, Any]) -> None:
    extras = pyproject["project"]["optional-dependencies"]
    wanted = [*pyproject["project"]["dependencies"], *pyproject["dependency-groups"]["dev"]]
    wanted += [line for name, lines in extras.items() if name != "all" for line in lines]
    names = {re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0] for line in wanted}
    assert names <= pinned(lock).keys()


def test_what_is_installed_is_what_is_locked(lock: str, pyproject: dict[str, Any]) -> None:
    direct = {
        re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0] for line in pyproject["project"]["dependencies"]
    }
    expected = {name: number for name, number in pinned(lock).items() if name in direct}
    assert {name: version(name) for name in expected} == expected


@pytest.mark.parametrize(("name", "limit"), [("fastapi", (0, 151)), ("sqlalchemy", (2, 1))])
def test_versions_that_break_prefect_stay_out(name: str, limit: tuple[int, int]) -> None:
    major, minor = (int(part) for part in version(name).split(".")[:2])
    assert (major, minor) < limit


def test_no_library_of_gigabytes_is_a_dependency(lock: str) -> None:
    assert not {"torch", "triton", "tensorflow"} & pinned(lock).keys()


def test_the_extra_all_has_every_extra_and_no_extra_repeats_a_dependency(pyproject: dict[str, Any]) -> None:
    extras = dict(pyproject["project"]["optional-dependencies"])
    (line,) = extras.pop("all")
    assert line == f"privsweep[{','.join(sorted(extras))}]"
    for lines in extras.values():
        assert not set(lines) & set(pyproject["project"]["dependencies"])


def contracts(pyproject: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The import contracts of a kind."""
    found: list[dict[str, Any]] = pyproject["tool"]["importlinter"]["contracts"]
    return [contract for contract in found if contract["type"] == kind]


def test_the_insides_of_every_topic_are_protected(pyproject: dict[str, Any]) -> None:
    (rooms,) = (c for c in contracts(pyproject, "layers") if c.get("containers") == ["privcore"])
    topics = {f"privcore.{topic}.**" for layer in rooms["layers"][:3] for topic in layer.split(" | ")}
    assert len(topics) >= 6
    assert any(topics <= set(c["protected_modules"]) for c in contracts(pyproject, "protected"))


def test_import_contracts_make_no_exception_and_name_every_room(pyproject: dict[str, Any]) -> None:
    text = json.dumps(pyproject["tool"]["importlinter"])
    assert "ignore_imports" not in text
    assert all(c["exhaustive"] for c in contracts(pyproject, "layers") if "containers" in c)


def modules(repository: Path) -> list[Path]:
    """The Python and JavaScript files of the product, without tests."""
    return sorted(
        p for name in PACKAGES for end in ("py", "js") for p in (repository / name).rglob(f"*.{end}")
    )


def test_the_product_has_no_foreign_source(repository: Path) -> None:
    """Source of other projects has a licence, or begins without the sentence that begins our own files."""
    files = [path for name in PACKAGES for path in (repository / name).rglob("*") if path.is_file()]
    assert [path for path in files if re.match(r"(LICEN[CS]E|COPYING|NOTICE)\b", path.name)] == []
    own = {".py": ('"""', 'r"""'), ".js": ("// ",)}
    texts = {path: path.read_text() for path in modules(repository)}
    assert len(texts) > 300
    assert [path for path, text in texts.items() if text and not text.startswith(own[path.suffix])] == []
    foreign = re.compile(r"copyright|licen[cs]ed? under|permission is hereby granted|SPDX-Lic", re.IGNORECASE)
    assert [path for path, text in texts.items() if foreign.search(text)] == []


@pytest.mark.parametrize(("package", "limit"), [("flows", 4), ("privcore", 14)])
def test_a_divided_package_has_few_files_outside_its_rooms(
    package: str, limit: int, repository: Path
) -> None:
    loose = sorted(path.name for path in (repository / package).glob("*.py"))
    assert len(loose) <= limit, loose


def test_no_module_is_longer_than_one_idea(repository: Path) -> None:
    lengths = {str(path): path.read_text().count("\n") for path in modules(repository)}
    assert {path: length for path, length in lengths.items() if length > 560} == {}


def test_no_folder_has_more_than_sixteen_modules_side_by_side(repository: Path) -> None:
    folders = Counter(path.parent for path in modules(repository) if path.name != "__init__.py")
    assert {str(folder): number for folder, number in folders.items() if number > 16} == {}


def test_the_type_of_a_problem_and_of_a_claim_is_written_in_the_base_classes_alone(repository: Path) -> None:
    bases = {repository / "privcore" / name for name in ("constraint.py", "method.py", "problem.py")}
    python = [path for path in modules(repository) if path.suffix == ".py"]
    assert [path for path in python if "ClassVar[" in path.read_text() and path not in bases] == []
    numerics = [path for path in python if path.is_relative_to(repository / "privcore")]
    assert [path for path in numerics if "assert isinstance(problem" in path.read_text()] == []


def test_few_files_decide_how_rows_of_a_published_table_are_marked(repository: Path) -> None:
    """An end has its table in the name of its method, so that layers which pass it on say nothing of it."""
    named = [path for path in modules(repository) if "imported" in path.read_text()]
    assert repository / "storage" / "schema.py" in named
    assert len(named) <= 7, named


NO_ANSWERS = {"Real", "Integer", "RatioBracket", "BagDraws", "Cells"}
"""Classes whose ends answer no question: those of domains, of distributions, and of samples in arrays."""


def test_two_classes_declare_both_ends_of_an_answer_and_six_extend_one_of_them(repository: Path) -> None:
    """`Interval` has the ends of one answer, and `Enclosures` arrays of the ends of its enclosures."""
    trees = [ast.parse(path.read_text()) for path in modules(repository) if path.suffix == ".py"]
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    both = {each.name for each in classes if {"lower", "upper"} <= values_of(each)}
    assert both == NO_ANSWERS | {"Interval", "Enclosures"}
    bases = {each.name: {ast.unparse(base) for base in each.bases} for each in classes}
    heirs = {"Interval"}
    while more := {name for name, of in bases.items() if of & heirs} - heirs:
        heirs |= more
    assert heirs - {"Interval"} == {"Answer", "Bracket", "Asked", "Found", "ProfileLine", "Enclosure"}


def values_of(kind: ast.ClassDef) -> set[str]:
    """The names of the values of an object: fields, properties, and attributes that its methods assign."""
    found = set[str]()
    for node in kind.body:
        if isinstance(node, ast.AnnAssign):
            found.add(ast.unparse(node.target))
        elif isinstance(node, ast.FunctionDef):
            found |= {node.name for each in node.decorator_list if "property" in ast.unparse(each)}
            stored = (each for each in ast.walk(node) if isinstance(each, ast.Attribute))
            found |= {each.attr for each in stored if isinstance(each.ctx, ast.Store)}
    return found
