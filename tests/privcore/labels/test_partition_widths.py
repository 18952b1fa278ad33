"""Intervals of simulated advantages in a partition: each part against enumeration, and their widths."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

from flows.answers.ask import ask
from privcore import Answer, Problem, find, find_problem
from privcore.labels import partitions
from privcore.labels.partitions import draws_of_partition
from privcore.labels.sums.left import FileRows, SumRelease, mean_of_members, parts_needed
from privcore.labels.sums.poisson_binomial import Array, leave_one_out, pmf
from privcore.labels.sums.rows import one_by_one

RELEASES = [
    SumRelease(mechanism="llp", epsilon=math.inf),
    SumRelease(mechanism="llp-geometric", epsilon=1.0),
    SumRelease(mechanism="llp-laplace", epsilon=0.1),
    SumRelease(mechanism="llp-laplace", epsilon=1.0),
    SumRelease(mechanism="llp-laplace", epsilon=20.0),
]


def question(path: Path, etas: Array, release: SumRelease, bag_size: int, **fields: Any) -> Problem:
    """A question about a partition of a file with these probabilities."""
    file = path / "scores.npy"
    np.save(file, etas)
    noise = {} if release.mechanism == "llp" else {"label_epsilon": release.epsilon}
    asked = {"prior": f"column({file},0)", "mechanism": release.mechanism, "bag_size": bag_size}
    return find_problem("label-advantage").asked({**asked, **noise, **fields})


def simulated(problem: Problem, samples: int = 10_000) -> Answer:
    """Return the simulated answer at confidence 0.95."""
    method = find("labels.sampling").from_knobs({"samples": samples, "confidence": 0.95})
    return ask(problem, [method]).replies[0].answer


def mean_gain(bag: Array, attacked: Array, release: SumRelease) -> tuple[float, float]:
    """Return bounds of the mean advantage over some rows, each with the same others."""
    laws = np.repeat(pmf(bag)[None, :], attacked.size, axis=0)
    low, high = one_by_one(laws, attacked, release.mechanism, release.epsilon)
    return float(low.mean()), float(high.mean())


@pytest.mark.parametrize("release", RELEASES, ids=str)
@pytest.mark.parametrize(("total", "others"), [(6, 0), (9, 2), (60, 29), (60, 45), (400, 150)])
def test_the_mean_over_the_rows_that_are_left_is_that_of_each_row(
    release: SumRelease, total: int, others: int
) -> None:
    rng = np.random.default_rng(total + others)
    # ties with an output that is as likely for both labels, and rows near 0, 1/2 and 1
    special = np.array([0.0, 0.5, 0.5, 1e-12, 1.0 - 1e-12, 0.5 + 1e-15])
    etas = np.sort(np.concatenate([special, rng.random(total - special.size)]))
    rows = FileRows.of(*np.unique(etas, return_counts=True))
    chosen = np.array([rng.permutation(total)[:others] for _ in range(5)])
    members = np.sort(etas[chosen], axis=1)
    laws = pmf(members)
    release = parts_needed(rows, laws, members, release)
    lows, highs = rows.advantages(laws, members, release)
    gap = 3e-3 if release.mechanism == "llp-laplace" else 1e-9
    for low, high, places, bag in zip(lows, highs, chosen, members, strict=True):
        least, most = mean_gain(bag, np.delete(etas, places), release)
        assert low <= most
        assert least <= high
        assert high - low <= gap * high


@pytest.mark.parametrize("release", RELEASES[:4], ids=str)
def test_the_mean_over_members_is_that_of_each_member_with_all_others(release: SumRelease) -> None:
    bag = np.array([0.5, 0.2, 0.9, 0.0, 0.5, 0.31, 0.77, 1.0])
    low, high = mean_of_members(bag[:5], pmf(bag[5:]), release)
    each = [mean_gain(np.delete(bag, j), bag[j : j + 1], release) for j in range(5)]
    assert low <= math.fsum(most for _, most in each) / 5.0
    assert math.fsum(least for least, _ in each) / 5.0 <= high
    assert high - low <= 1e-12
    assert np.allclose(leave_one_out(bag[:5], pmf(bag[5:])), leave_one_out(bag)[:5], rtol=1e-13)


@pytest.mark.parametrize("release", [RELEASES[0], RELEASES[1], RELEASES[3]], ids=str)
@pytest.mark.parametrize("values", [(0.1, 0.45), (0.02, 0.3), (0.0, 0.5)])
@pytest.mark.parametrize("bag_size", [40, 90, 150])
@pytest.mark.parametrize("rare", [(0.7, 0.5, 0.3, 0.1, 0.01), (1e-2, 1e-4, 1e-13)], ids=["often", "rarely"])
def test_the_mean_excess_over_each_cap_is_at_least_that_of_all_bags(
    release: SumRelease,
    values: tuple[float, float],
    bag_size: int,
    rare: tuple[float, ...],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """In a file with 120 rows of one value and 80 of another, bags differ by a hypergeometric number."""
    monkeypatch.setattr(partitions, "_RARE", np.array(rare))
    found: list[tuple[float, float]] = []
    real = partitions._caps

    def spied(*args: Any) -> list[tuple[float, float]]:
        found.extend(real(*args))
        return found

    monkeypatch.setattr(partitions, "_caps", spied)
    problem = question(tmp_path, np.repeat(values, (120, 80)), release, bag_size)
    draws_of_partition(problem, 10)  # type: ignore[arg-type]
    members = partitions.attacked_members(problem)  # type: ignore[arg-type]
    assert members in {0, bag_size}
    drawn = bag_size if members else bag_size - 1
    number = np.arange(max(0, drawn - 80), min(120, drawn) + 1)
    weights = scipy.stats.hypergeom(200, 120, drawn).pmf(number)
    samples = []
    for one in number.tolist():
        bag, left = np.repeat(values, (one, drawn - one)), np.repeat(values, (120 - one, 80 - drawn + one))
        mean = mean_of_members(bag, np.ones(1), release) if members else mean_gain(bag, left, release)
        samples.append(mean[0])
    for cap, excess in found:
        assert (weights * np.maximum(0.0, np.array(samples) - cap)).sum() <= excess * (1.0 + 1e-12) + 1e-16


def test_bags_that_are_all_alike_have_an_exact_advantage(tmp_path: Path) -> None:
    etas = np.random.default_rng(4).random(300)
    whole = simulated(question(tmp_path, etas, RELEASES[0], 300))
    each = [mean_gain(np.delete(etas, j), etas[j : j + 1], RELEASES[0]) for j in range(300)]
    assert whole.lower <= math.fsum(most for _, most in each) / 300.0
    assert math.fsum(least for least, _ in each) / 300.0 <= whole.upper
    assert whole.upper - whole.lower < 1e-10 * whole.upper
    single = simulated(question(tmp_path, etas, RELEASES[0], 1))
    assert single.lower <= np.minimum(etas, 1.0 - etas).mean() <= single.upper
    assert single.upper - single.lower < 1e-11


@pytest.mark.parametrize("release", [RELEASES[0], RELEASES[1], RELEASES[3]], ids=str)
@pytest.mark.parametrize(("total", "bag_size"), [(300, 30), (300, 290), (20_000, 8), (20_000, 1000)])
def test_a_large_simulated_bag_of_scores_has_an_interval_of_two_per_cent(
    release: SumRelease, total: int, bag_size: int, tmp_path: Path
) -> None:
    answer = simulated(
        question(tmp_path, np.random.default_rng(total).random(total), release, bag_size), 5_000
    )
    assert answer.upper - answer.lower < 0.02 * answer.lower


@pytest.mark.thorough
def test_the_exact_advantage_of_files_with_two_values_is_inside_the_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 files; an interval at confidence 0.95 may miss the truth, but bets at fixed stakes rarely do."""
    rng = np.random.default_rng(53)
    exact = [find("labels.composition")()]
    missed = 0
    for seed in range(200):
        monkeypatch.setattr(partitions, "seed_of", lambda *_, seed=seed: seed)  # else it depends on the path
        total = int(rng.choice([10, 300, 20_000]))
        bag_size = int(rng.integers(2, min(total, 300) + 1))
        etas = rng.choice(rng.random(2), total, p=(0.4, 0.6))
        release = RELEASES[int(rng.choice([0, 1, 3]))]
        problem = question(tmp_path, etas, release, bag_size)
        truth, answer = ask(problem, exact), simulated(problem, 1000)
        assert truth.upper - truth.lower <= 1e-9
        missed += not (answer.lower <= truth.upper and truth.lower <= answer.upper)
    assert missed == 0
