import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from privcore import PROBLEMS, Answer, Point, Problem, Status, find, find_problem
from privcore.parameter import Integer, Real
from storage import SCHEMA_VERSION, provenance, schema_for, to_table
from storage.schema import BOOKKEEPING, _commit_of, problem_id
from tests.storage.made_up import NOON, Claims, epsilon, row


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_every_parameter_is_a_typed_column_with_its_declaration(problem: type[Problem]) -> None:
    schema = schema_for(problem)
    for name, parameter in problem.parameters.items():
        field = schema.field(name)
        wanted = {Real: pa.float64(), Integer: pa.int64()}.get(type(parameter), pa.string())
        assert field.type == wanted
        assert field.metadata == {
            b"domain": parameter.domain.encode(),
            b"unit": parameter.unit.encode(),
            b"meaning": parameter.meaning.encode(),
        }
    assert schema.metadata == {
        b"privsweep.schema_version": str(SCHEMA_VERSION).encode(),
        b"privsweep.problem": problem.name.encode(),
    }


def test_a_table_keeps_every_value_of_its_rows() -> None:
    answer = Answer.enclosure(0.1, 0.30000000000000004, value=0.2, confidence=0.99, detail="so")
    problem = epsilon(sigma=1.25, delta=1e-9, epochs=7, adjacency="add")
    one = row(problem, answer, method=Claims(number=3), sweep="s")
    two = row(epsilon(), Answer.without(Status.TIMEOUT, "It took 3 s."))
    first, second = to_table([one, two]).to_pylist()
    assert {name: first[name] for name in problem.parameters} == problem.as_fields()
    assert first["point_id"] == one.point.id
    assert first["problem_id"] == problem_id(problem)
    assert (first["problem"], first["method"], first["method_version"]) == (problem.name, "test.claims", 1)
    assert (first["knobs"], second["knobs"]) == ('{"number":3}', "{}")
    assert [first[k] for k in ("lower", "upper", "value", "confidence", "status", "detail")] == [
        *(0.1, 0.30000000000000004, 0.2, 0.99),
        *("ok", "so"),
    ]
    assert (first["seconds"], first["cpu_seconds"], first["attempt"], first["sweep"]) == (0.25, 0.125, 1, "s")
    assert first["finished_at"] == NOON
    assert (second["lower"], second["upper"], second["value"]) == (0.0, float("inf"), None)
    assert (second["status"], second["detail"]) == ("timeout", "It took 3 s.")


def test_rows_of_two_problem_classes_do_not_make_a_table() -> None:
    exact = find("unamplified.exact")()
    other = find_problem("unamplified-delta").from_fields({"sigma": 1.0, "epsilon": 1.0})
    mixed = [row(epsilon()), row(other, method=exact)]
    with pytest.raises(ValueError, match=r"one problem class, got \['unamplified-delta', 'unamplified-eps"):
        to_table(mixed)
    with pytest.raises(ValueError, match="one problem class"):
        to_table([])


def test_a_problem_has_one_id_whatever_the_method_and_the_spelling_of_its_defaults() -> None:
    ids = {problem_id(Point(problem=epsilon(), method=m).problem) for m in (Claims(), Claims(number=1))}
    assert ids == {problem_id(epsilon(sigma=1, steps=1, adjacency="add-remove"))}
    assert problem_id(epsilon(epochs=2)) not in ids


def test_provenance_names_the_packages_that_make_the_numbers() -> None:
    origin = provenance()
    assert json.loads(origin.versions).keys() == {
        *("python", "privsweep", "numpy", "scipy", "numba", "dp-accounting", "jax", "optax", "scikit-learn")
    }
    assert origin.host
    assert origin is provenance()


def test_code_that_no_repository_tracks_has_no_commit(tmp_path: Path) -> None:
    package = tmp_path / "site" / "privcore"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    assert _commit_of(package) == ("unknown", None)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "somebody else's"], check=True)
    assert _commit_of(package) == ("unknown", None)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "ours"], check=True)
    commit, dirty = _commit_of(package)
    assert (len(commit), dirty) == (40, False)
    (package / "__init__.py").write_text("changed = True\n")
    assert _commit_of(package) == (commit, True)


@pytest.mark.parametrize(("dirty", "claimed"), [(False, None), (True, True)])
def test_an_installed_package_names_its_commit_and_claims_no_clean_tree(
    tmp_path: Path, dirty: bool, claimed: bool | None
) -> None:
    (tmp_path / "built.json").write_text(json.dumps({"commit": "c0ffee", "dirty": dirty}))
    assert _commit_of(tmp_path) == ("c0ffee", claimed)


def test_no_field_of_a_problem_has_the_name_of_a_column_of_every_row() -> None:
    for kind in PROBLEMS:
        assert not set(kind.parameters) & BOOKKEEPING, kind.name
