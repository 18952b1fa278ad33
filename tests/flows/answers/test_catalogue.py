"""The support matrix: every pair of problem and method once, with the declarations of both."""

from flows.answers.catalogue import ESTIMATED, PROVED, matrix
from privcore import METHODS, PROBLEMS, Direction, find
from tests.flows.small_store import Command


def test_the_matrix_has_each_pair_once() -> None:
    pairs = [(entry["problem"], entry["method"]) for entry in matrix()]
    wanted = {(problem.name, method.name) for method in METHODS for problem in method.problems}
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == wanted


def test_the_confidence_of_a_simulation_is_a_knob_and_that_of_an_audit_a_field() -> None:
    held = {(entry["problem"], entry["method"]): entry["holds"] for entry in matrix()}
    assert held["allocation-delta", "allocation.montecarlo"] == "confidence"
    assert held["allocation-delta", "allocation.certified"] == PROVED
    assert held["audit-epsilon", "auditing.combined"] == "audit_confidence"
    assert held["membership-sample-advantage", "membership.mcdiarmid"] == "confidence_level"
    for (_, name), holds in held.items():
        assert (holds == ESTIMATED) == (find(name).direction is Direction.ESTIMATE)


def test_every_row_has_its_methods_under_the_side_that_they_bound(privsweep: Command) -> None:
    assert privsweep("methods") == 0
    lines = privsweep.out.splitlines()
    starts = [lines[1].index(side) for side in ("both ends", "upper end", "lower end", "estimate")]
    for problem, line in zip(PROBLEMS, lines[2:], strict=False):
        name, topic = line.split()[:2]
        assert name == problem.name
        cells = [line[a:b] for a, b in zip(starts, [*starts[1:], None], strict=True)]
        for direction, cell in zip(Direction, cells, strict=True):
            words = [word.rstrip("*") for word in cell.strip().split(", ") if word]
            named = {word if "." in word else topic + word for word in words}
            wanted = {m.name for m in METHODS if problem in m.problems and m.direction is direction}
            assert named == wanted, (problem.name, direction)


def test_a_star_marks_what_a_confidence_is_about(privsweep: Command) -> None:
    assert privsweep("methods") == 0
    assert "montecarlo*" in privsweep.out
    assert "certified*" not in privsweep.out


def test_json_has_the_matrix_beside_the_keys_of_before(privsweep: Command) -> None:
    assert list(privsweep.told("methods")) == ["problems", "methods", "matrix"]
    assert privsweep.json["matrix"] == matrix()


def test_a_name_shows_that_problem_or_method_alone(privsweep: Command) -> None:
    assert privsweep("methods", "poisson-epsilon") == 0
    assert "sampling_probability" in privsweep.out
    assert "allocation" not in privsweep.out.replace("sampled allocation", "")
    assert privsweep("methods", "allocation.montecarlo") == 0
    assert "reference  Chua et al." in privsweep.out
    assert "samples" in privsweep.out
    assert privsweep.told("methods", "allocation.montecarlo")["name"] == "allocation.montecarlo"
    assert privsweep("methods", "poisson-epsilom") == 2
    assert "Did you mean poisson-epsilon?" in privsweep.err
    assert privsweep("methods", "poisson-epsilon", "--all") == 2


def test_all_shows_the_fields_of_every_problem(privsweep: Command) -> None:
    assert privsweep("methods", "--all") == 0
    for problem in PROBLEMS:
        assert f"\n{problem.name}: " in privsweep.out
