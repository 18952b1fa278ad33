"""Bags of a partition of a file, against the enumeration of all choices of rows, labels and outputs."""

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flows.answers.ask import Asked, ask
from privcore import DomainError, Problem, find, find_problem, methods_for
from privcore.distributions.prior_finite import FinitePrior
from privcore.labels.sums.partition import revealed_in_partition
from tests.privcore.labels.attacks import ROUNDING, best_gain, law_of_sum, likelihoods

FILES: tuple[tuple[float, ...], ...] = (
    (0.5, 0.5, 0.0, 0.0),
    (0.5, 0.0, 0.0, 0.0),
    (0.1, 0.4, 0.45, 0.9, 0.2, 0.2),
    (0.0, 0.3, 0.3, 1.0, 0.7),
    (0.02, 0.05, 0.05, 0.1, 0.6, 0.61, 0.3),
)


def question(path: Path, name: str, etas: Sequence[float], **fields: Any) -> Problem:
    """A question about a file with these probabilities."""
    file = path / "scores.csv"
    file.write_text("eta\n" + "".join(f"{eta}\n" for eta in etas))
    noise = {} if fields["mechanism"] == "llp" else {"label_epsilon": 1.0}
    return find_problem(name).asked({"prior": f"column({file},eta)", **noise, **fields})


def proved(problem: Problem) -> Asked:
    """Return the answer of all methods except the simulation."""
    return ask(problem, [method() for method in methods_for(problem) if method.name != "labels.sampling"])


def bags(etas: Sequence[float], k: int) -> Iterator[tuple[float, list[float]]]:
    """Yield every row with every choice of other rows; all are equally likely."""
    for i, eta in enumerate(etas):
        for others in itertools.combinations([*etas[:i], *etas[i + 1 :]], k - 1):
            yield eta, list(others)


@pytest.mark.thorough
@pytest.mark.parametrize("etas", FILES, ids=str)
@pytest.mark.parametrize("mechanism", ["llp", "llp-geometric", "llp-laplace"])
def test_the_advantage_in_a_partition_is_that_of_all_choices_of_rows(
    etas: tuple[float, ...], mechanism: str, tmp_path: Path
) -> None:
    epsilon, coarse = (math.inf, 0.0) if mechanism == "llp" else (1.0, 1e-4)
    coarse = coarse if mechanism == "llp-laplace" else 0.0  # the enumeration tries a grid of thresholds
    for k in range(1, len(etas) + 1):
        gains = [best_gain(eta, others, mechanism, epsilon) for eta, others in bags(etas, k)]
        truth = math.fsum(gains) / len(gains)
        asked = proved(question(tmp_path, "label-advantage", etas, mechanism=mechanism, bag_size=k))
        assert asked.confidence == 1.0
        assert asked.lower - ROUNDING - coarse <= truth <= asked.upper + ROUNDING
        assert asked.upper - asked.lower < 1e-9
        blind = math.fsum(max(eta, 1.0 - eta) for eta in etas) / len(etas)
        accuracy = proved(question(tmp_path, "label-attack-accuracy", etas, mechanism=mechanism, bag_size=k))
        assert accuracy.lower - ROUNDING - coarse <= blind + truth <= accuracy.upper + ROUNDING
        own = etas[-1]
        at = [
            best_gain(own, list(others), mechanism, epsilon)
            for others in itertools.combinations(etas[:-1], k - 1)
        ]
        one = proved(question(tmp_path, "label-advantage-at", etas, mechanism=mechanism, bag_size=k, eta=own))
        assert one.lower - ROUNDING - coarse <= math.fsum(at) / len(at) <= one.upper + ROUNDING


@pytest.mark.parametrize("etas", FILES, ids=str)
@pytest.mark.parametrize("mechanism", ["llp", "llp-geometric"])
def test_the_ratio_in_a_partition_is_that_of_all_choices_of_rows(
    etas: tuple[float, ...], mechanism: str, tmp_path: Path
) -> None:
    for k in range(1, len(etas) + 1):
        total, above, revealed = 0, 0.0, 0.0
        for eta, others in bags(etas, k):
            total += 1
            for one, zero in likelihoods(law_of_sum(others), mechanism, 1.0):
                mass = eta * one + (1.0 - eta) * zero
                ratio = math.inf if min(one, zero) == 0.0 else abs(math.log(one / zero))
                above += mass if ratio > 0.4321 else 0.0
                revealed += mass if ratio == math.inf else 0.0
        fields = {"mechanism": mechanism, "bag_size": k}
        tail = proved(question(tmp_path, "label-ratio-tail", etas, log_ratio=0.4321, **fields))
        assert tail.lower - ROUNDING <= above / total <= tail.upper + ROUNDING
        assert tail.upper - tail.lower < 1e-8
        sure = proved(question(tmp_path, "label-ratio-infinite", etas, **fields))
        assert sure.lower - ROUNDING <= revealed / total <= sure.upper + ROUNDING
        assert sure.upper - sure.lower < 1e-9


@pytest.mark.parametrize("etas", FILES, ids=str)
def test_the_tail_of_the_advantage_in_a_bag_is_that_of_all_bags(
    etas: tuple[float, ...], tmp_path: Path
) -> None:
    for k in range(1, len(etas) + 1):
        means = [
            math.fsum(best_gain(bag[i], [*bag[:i], *bag[i + 1 :]], "llp", math.inf) for i in range(k)) / k
            for bag in itertools.combinations(etas, k)
        ]
        truth = sum(mean > 0.1234 for mean in means) / len(means)
        fields = {"mechanism": "llp", "bag_size": k, "threshold": 0.1234}
        asked = proved(question(tmp_path, "label-advantage-tail", etas, **fields))
        assert asked.lower - ROUNDING <= truth <= asked.upper + ROUNDING
        assert asked.upper - asked.lower < 1e-8


def test_published_examples_reveal_more_than_draws_with_replacement(tmp_path: Path) -> None:
    for etas, k, cut, drawn in ((FILES[0], 2, 5 / 24, 3 / 16), (FILES[1], 4, 1 / 8, 0.088623046875)):
        for draw, truth in ((None, cut), ("partition", cut), ("with-replacement", drawn)):
            fields = {"mechanism": "llp", "bag_size": k} | ({} if draw is None else {"draw": draw})
            asked = proved(question(tmp_path, "label-advantage", etas, **fields))
            assert asked.lower <= truth <= asked.upper
            assert asked.upper - asked.lower < 1e-9


@pytest.mark.parametrize("name", ["label-advantage", "label-advantage-at", "label-ratio-tail"])
@pytest.mark.parametrize("mechanism", ["llp", "llp-geometric", "llp-laplace"])
def test_simulated_partitions_agree_with_the_exact_sums(name: str, mechanism: str, tmp_path: Path) -> None:
    fields = {"label-advantage-at": {"eta": 0.4}, "label-ratio-tail": {"log_ratio": 0.35}}.get(name, {})
    problem = question(tmp_path, name, FILES[2], mechanism=mechanism, bag_size=3, **fields)
    replies = {reply.method.name: reply.answer for reply in ask(problem).replies}
    simulated, exact = replies["labels.sampling"], replies["labels.composition"]
    assert simulated.lower <= exact.upper
    assert exact.lower <= simulated.upper
    assert simulated.upper - simulated.lower < 0.1


def test_a_bag_larger_than_the_file_is_refused(tmp_path: Path) -> None:
    for name, fields in (("label-advantage", {}), ("label-advantage-tail", {"threshold": 0.1, "bags": 2})):
        with pytest.raises(DomainError, match="at most 4 examples, the number of rows of the file, got"):
            question(tmp_path, name, FILES[0], mechanism="llp", bag_size=5 - 2 * bool(fields), **fields)
    with pytest.raises(DomainError, match="of no row"):
        question(tmp_path, "label-advantage-at", FILES[0], mechanism="llp", bag_size=2, eta=0.3)


def test_only_a_file_is_cut_into_bags(tmp_path: Path) -> None:
    kind = find_problem("label-advantage")
    with pytest.raises(DomainError, match="Expected draw=with-replacement for prior=uniform"):
        kind.asked({"prior": "uniform", "mechanism": "llp", "bag_size": 2, "draw": "partition"})
    with pytest.raises(DomainError, match="mechanism rr, which has no bags"):
        question(tmp_path, "label-advantage", FILES[0], mechanism="rr", draw="partition")


def test_a_column_of_labels_that_are_certain_is_cut_into_bags_too(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("eta\n0\n1\n1\n")
    fields = {"prior": f"certain({file},eta)", "mechanism": "llp", "bag_size": 2}
    problem = find_problem("label-advantage").asked(fields)
    assert problem.as_fields()["draw"] == "partition"
    assert proved(problem).upper == 0.0
    with pytest.raises(DomainError, match="at most 3 examples"):
        find_problem("label-advantage").asked(fields | {"bag_size": 4})


@pytest.mark.parametrize(("mechanism", "bag_size"), [("llp", 100), ("llp-laplace", 60)])
def test_simulated_bags_of_a_large_part_of_a_file_have_a_narrow_interval(
    mechanism: str, bag_size: int, tmp_path: Path
) -> None:
    """Two values have an exact advantage."""
    etas = [0.1] * 140 + [0.4] * 160
    problem = question(tmp_path, "label-advantage", etas, mechanism=mechanism, bag_size=bag_size)
    exact = proved(problem)
    simulation = find("labels.sampling").from_knobs({"samples": 20_000, "confidence": 0.999})
    found = ask(problem, [simulation])
    assert exact.upper < exact.lower * (1.0 + 1e-9)
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper < 1.05 * found.lower


def test_stored_problems_of_a_file_keep_their_meaning_and_their_identity(tmp_path: Path) -> None:
    asked = question(tmp_path, "label-advantage", FILES[0], mechanism="llp", bag_size=2)
    stored = type(asked).from_fields({"prior": asked.as_fields()["prior"], "mechanism": "llp", "bag_size": 2})
    assert stored.as_fields()["draw"] == "with-replacement"
    assert "draw" not in stored.identity()
    assert asked.identity()["draw"] == "partition"


def test_different_rows_are_drawn_uniformly() -> None:
    law = FinitePrior("", np.arange(8) / 8.0, np.full(8, 0.125), counts=np.array([1] * 8))
    rng = np.random.default_rng(1)
    for members in (2, 1, 5, 8):
        drawn = law.draw_rows(rng, 20_000, members)
        assert all(len(set(row)) == members for row in drawn[:1000].tolist())
        for place in range(members):  # every place has every row equally often
            share = np.bincount((8 * drawn[:, place]).astype(int), minlength=8) / 20_000
            assert abs(share - 0.125).max() < 5.0 * math.sqrt(0.125 * 0.875 / 20_000)


def test_revealed_labels_of_many_rows_are_those_of_the_recursion() -> None:
    """The elementary symmetric polynomials of 3,000 values, by their recursion over the rows."""
    rng = random.Random(5)
    values = sorted(rng.betavariate(2, 30) for _ in range(3000))
    law = FinitePrior("", np.array(values), np.full(3000, 1 / 3000), counts=np.ones(3000, dtype=np.int64))
    for k in (2, 7, 40):
        truth = 0.0
        for etas in (values, [1.0 - eta for eta in values]):
            means = np.zeros(k + 1)  # of the products over j of the first rows, times their share
            means[0] = 1.0
            for eta in etas:
                means[1:] += means[:-1] * eta
            truth += means[k] / math.comb(3000, k)
        low, high = revealed_in_partition(law, k)
        assert low * (1.0 - ROUNDING) <= truth <= high * (1.0 + ROUNDING)
        assert high - low < 3e-4 * high
