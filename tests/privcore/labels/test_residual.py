"""Bounds from a lattice of etas, against exact sums, enumerated attacks and simulations."""

import math
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privcore import Answer, Point, Problem, evaluate, find, find_problem, methods_for
from privcore.labels.residual import LabelsResidual, Members, residual_law, second_moments
from privcore.labels.sums.noisy_sums import noise_of
from privcore.labels.sums.poisson_binomial import pmf
from tests.privcore.labels.attacks import answer

EXACT = find("labels.composition")()


def question(path: Path, etas: Sequence[float], **fields: Any) -> Problem:
    file = path / "scores.csv"
    file.write_text("eta\n" + "".join(f"{eta!r}\n" for eta in etas))
    return find_problem("label-advantage").asked({"prior": f"column({file},eta)", **fields})


def drawn(path: Path, seed: int) -> Problem:
    """Return a question about a file with few values, which has an exact answer."""
    rng = random.Random(seed)
    mechanism = rng.choice(("llp", "llp", "llp-geometric", "llp-laplace"))
    noise = {} if mechanism == "llp" else {"label_epsilon": rng.choice((0.5, 1.0, 4.0))}
    number, rows = rng.choice((1, 2, 3, 4)), rng.choice((10, 300))
    shapes = ((1.0, 1.0), (2.0, 6.0), (0.6, 0.6))
    values = [round(0.001 + 0.998 * rng.betavariate(*rng.choice(shapes)), 4) for _ in range(number)]
    few, many = (3, 8), (33, 60)  # bags between them take longest
    least, most = rng.choice((few, many)) if number <= 2 else few
    draw = rng.choice(("partition", "with-replacement"))
    size = min(rng.randint(least, most), rows)
    etas = [rng.choice(values) for _ in range(rows)]
    return question(path, etas, mechanism=mechanism, bag_size=size, draw=draw, **noise)


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(40))
def test_the_bracket_has_the_exact_advantage_at_200_drawn_files(part: int, tmp_path: Path) -> None:
    for case in range(5):
        problem = drawn(tmp_path, 5 * part + case)
        exact, found = answer(EXACT, problem), answer(LabelsResidual(), problem)
        assert exact.ok
        assert found.ok, found.detail
        assert found.lower <= exact.upper, problem
        assert exact.lower <= found.upper, problem


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("mechanism", "epsilon", "size", "widest"),
    [
        ("llp", math.inf, 16, 0.02),
        ("llp", math.inf, 100, 0.02),
        ("llp", math.inf, 1000, 0.02),
        ("llp-geometric", 1.0, 64, 0.02),
        ("llp-laplace", 0.5, 64, 0.02),
        ("llp-laplace", 4.0, 3, 0.02),
        ("llp-laplace", 4.0, 8, 0.02),
    ],
)
def test_the_bracket_of_twenty_thousand_scores_is_narrow_and_agrees_with_a_simulation(
    mechanism: str, epsilon: float, size: int, widest: float, tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    noise = {} if math.isinf(epsilon) else {"label_epsilon": epsilon}
    fields = {"mechanism": mechanism, "bag_size": size, "draw": "with-replacement", **noise}
    problem = question(tmp_path, rng.beta(1.5, 3.0, 20_000).tolist(), **fields)
    found = answer(LabelsResidual(), problem)
    assert found.upper - found.lower <= widest * found.upper
    simulated = answer(find("labels.sampling").from_knobs({"samples": 2000}), problem)
    assert simulated.lower <= found.upper
    assert found.lower <= simulated.upper


def test_a_partition_of_many_rows_is_enclosed_as_narrowly(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    etas = rng.beta(1.5, 3.0, 60_000).round(3).tolist()
    problem = question(tmp_path, etas, mechanism="llp", bag_size=32)
    assert problem.as_fields()["draw"] == "partition"
    found = answer(LabelsResidual(), problem)
    assert found.upper - found.lower <= 0.04 * found.upper
    simulated = answer(find("labels.sampling").from_knobs({"samples": 2000}), problem)
    assert simulated.lower <= found.upper
    assert found.lower <= simulated.upper


def test_a_continuous_prior_has_a_narrow_bracket_of_its_advantage_and_accuracy() -> None:
    fields = {"prior": "uniform", "mechanism": "llp", "bag_size": 64}
    advantage = answer(LabelsResidual(), find_problem("label-advantage").from_fields(fields))
    accuracy = answer(LabelsResidual(), find_problem("label-attack-accuracy").from_fields(fields))
    simulated = 0.00583330  # with the standard error 3e-7, from the reference values
    assert advantage.lower <= simulated <= advantage.upper < 1.02 * advantage.lower
    assert accuracy.lower <= 0.75 + simulated <= accuracy.upper < accuracy.lower + 1e-4


def enumerated(etas: Sequence[float], others: int) -> list[tuple[float, tuple[int, ...]]]:
    """Return the choices of lattice points of the others with their equal probabilities."""
    choices: list[tuple[int, ...]] = [()]
    for _ in range(others):
        choices = [(*choice, point) for choice in choices for point in range(len(etas))]
    return [(1.0 / len(choices), choice) for choice in choices]


def integrated(etas: Sequence[float], size: int, epsilon: float) -> float:
    """Return the advantage with Laplace noise by the midpoint rule over the noisy sum, for all bags."""
    step = 5e-4
    z = np.arange(-40.0 / epsilon, size + 40.0 / epsilon, step) + step / 2.0
    kernel = [0.5 * epsilon * np.exp(-epsilon * np.abs(z - s)) for s in range(size + 1)]
    total = 0.0
    for probability, choice in enumerated(etas, size - 1):
        q = pmf(np.array(etas)[list(choice)])
        zero, one = (sum(q[s] * kernel[s + y] for s in range(size)) for y in (0, 1))
        for eta in etas:
            sign = 1.0 if eta <= 0.5 else -1.0
            gain = np.maximum(0.0, sign * (eta * one - (1.0 - eta) * zero)).sum() * step
            total += probability / len(etas) * float(gain)
    return total


@pytest.mark.parametrize(("size", "epsilon"), [(3, 0.5), (3, 2.0), (4, 8.0)])
def test_laplace_noise_in_a_small_bag_is_enclosed_within_two_percent(
    size: int, epsilon: float, tmp_path: Path
) -> None:
    etas = (0.03, 0.2, 0.45, 0.7)
    fields = {"mechanism": "llp-laplace", "label_epsilon": epsilon, "draw": "with-replacement"}
    problem = question(tmp_path, etas, bag_size=size, **fields)
    found, exact, truth = (
        answer(LabelsResidual(), problem),
        answer(EXACT, problem),
        integrated(etas, size, epsilon),
    )
    assert exact.upper == pytest.approx(truth, rel=1e-6)
    assert found.lower <= truth * (1.0 + 1e-6)
    assert truth * (1.0 - 1e-6) <= found.upper <= found.lower * 1.02


def test_a_bag_of_thousands_of_fair_coins_is_enclosed_within_one_percent(tmp_path: Path) -> None:
    problem = question(tmp_path, [0.5] * 4, mechanism="llp", bag_size=2500, draw="with-replacement")
    found, exact = answer(LabelsResidual(), problem), answer(EXACT, problem)
    assert 0.99 * exact.lower < found.lower <= exact.lower
    assert exact.upper <= found.upper < 1.01 * exact.upper


def test_parts_of_a_count_enclose_laplace_noise() -> None:
    """Cut to parts, it has the masses of the kernels; geometric noise on the parts is a probability, too."""
    noise = noise_of("llp-laplace", 1.5, 4)
    assert noise.finer.sum() == pytest.approx(1.0, rel=1e-14)
    assert noise.coarser.sum() == pytest.approx(1.0, rel=1e-14)
    r = math.exp(-1.5)
    for part, (above, below) in enumerate(noise.coarser):
        ends = [part / 4, (part + 1) / 4]
        right = 0.5 * (math.exp(-1.5 * ends[0]) - math.exp(-1.5 * ends[1]))  # between 0 and 1
        left = 0.5 * (math.exp(-1.5 * (1.0 - ends[1])) - math.exp(-1.5 * (1.0 - ends[0])))  # between -1 and 0
        assert above * (1.0 - r) == pytest.approx(right, rel=1e-13)
        assert below * (1.0 - r) == pytest.approx(left, rel=1e-13)


def test_moments_are_those_of_all_choices_of_the_others() -> None:
    points, fineness, others, counts = np.array([0, 1, 3]), 4, 3, 12
    members = Members(fineness=fineness, points=points, masses=np.full(3, 1 / 3), rates=points / fineness)
    size, mean = counts * fineness, float((members.variances / 3).sum())
    noise, tau = noise_of("llp", math.inf, 1), 0.7
    (law,), error = residual_law(members, 0, others, noise, counts)
    found = second_moments(members, 0, tau, others, noise, counts)
    assert max(error, found.error) < 1e-15
    first, squares, products = np.zeros(size), np.zeros(size), np.zeros(size)
    weights = np.zeros(fineness)
    for probability, choice in enumerated(points.tolist(), others):
        chosen = points[list(choice)]
        q, shift = pmf(chosen / fineness), int(chosen.sum())
        tilt = math.exp(tau * float((members.variances[list(choice)] - mean).sum()))
        weights[-shift % fineness] += probability / tilt
        for z in range(others + 1):
            u = (fineness * z - shift) % size
            first[u] += probability * q[z]
            squares[u] += probability * tilt * q[z] ** 2
            products[u] += probability * tilt * q[z] * (q[z + 1] if z < others else 0.0)
    assert law[:, 0] == pytest.approx(first, abs=1e-15)
    assert found.squares[0, :, 0] == pytest.approx(squares, abs=1e-15)
    assert found.products[0, :, 0] == pytest.approx(products, abs=1e-15)
    assert found.weights[:fineness, 0] == pytest.approx(weights, rel=1e-12)


def test_reasons_name_what_the_method_does_not_cover() -> None:
    kind = find_problem("label-advantage")
    small = kind.from_fields({"prior": "uniform", "mechanism": "llp", "bag_size": 2})
    noisy = kind.from_fields(
        {"prior": "uniform", "mechanism": "llp-geometric", "bag_size": 8, "label_epsilon": 0.001}
    )
    assert "bags of 3 to 10000" in str(methods_for(small)[LabelsResidual])
    assert "label_epsilon >= 0.02" in str(methods_for(noisy)[LabelsResidual])
    reply: Answer = evaluate(Point(problem=small, method=LabelsResidual()))
    assert reply.status == "not_applicable"


@pytest.mark.soak
def test_ten_million_rows_take_twenty_seconds_and_a_gigabyte(tmp_path: Path) -> None:
    np.savez(tmp_path / "scores.npz", eta=np.random.default_rng(0).beta(2.0, 6.0, 10**7))
    script = (
        "import resource, time\n"
        "from privcore import Point, evaluate, find, find_problem\n"
        "started = time.perf_counter()\n"
        f"fields = {{'prior': 'column({tmp_path}/scores.npz,eta)', 'mechanism': 'llp', 'bag_size': 64}}\n"
        "problem = find_problem('label-advantage').asked(fields)\n"
        "found = evaluate(Point(problem=problem, method=find('labels.residual')()))\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6\n"
        "print(problem.draw, time.perf_counter() - started, peak, found.lower, found.upper)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    draw, seconds, gigabytes, lower, upper = ran.stdout.split()
    assert draw == "partition"
    assert float(seconds) < 20.0
    assert float(gigabytes) < 1.0
    assert float(upper) - float(lower) < 0.02 * float(upper)
