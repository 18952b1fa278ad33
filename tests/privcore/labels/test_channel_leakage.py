"""Advantages compared with qif, a library for the leakage of arbitrary channels.

The library has no code for sums of labels. The secret is the vector of all k labels, the channel has 2^k
rows, and the gain of a guess is 1 if one label is correct; the additive g-leakage is then the additive
advantage of this example.
"""

import itertools
import math
import random

import numpy as np
import pytest
import qif

from privcore import Point, evaluate, find, find_problem
from privcore.labels.sampling import LabelsSampling
from privcore.labels.sums.noisy_sums import released
from privcore.labels.sums.poisson_binomial import leave_one_out
from privcore.labels.sums.rows import exact_at


def drawn_etas(rng: random.Random) -> np.ndarray:
    k = rng.randint(1, 10)
    return np.array([rng.choice((rng.random(), rng.betavariate(2, 30), 0.5)) for _ in range(k)])


def channel(k: int, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Return all vectors of labels, and the channel from them to the released count."""
    labels = np.array(list(itertools.product((0, 1), repeat=k)))
    counts = labels.sum(axis=1)
    outputs = np.arange(k + 1)
    if math.isinf(epsilon):
        return labels, (counts[:, None] == outputs).astype(float)
    r = math.exp(-epsilon)
    kernel = (1.0 - r) / (1.0 + r) * r ** np.abs(counts[:, None] - outputs)
    kernel[:, [0, k]] /= 1.0 - r
    return labels, kernel


def leakage(etas: np.ndarray, member: int, labels: np.ndarray, kernel: np.ndarray) -> float:
    """Return the increase of the g-vulnerability of the label of a member by the release."""
    prior = np.where(labels == 1, etas, 1.0 - etas).prod(axis=1)
    gain = np.stack([(labels[:, member] == guess).astype(float) for guess in (0, 1)])
    before, after = qif.measure.g_vuln.prior(gain, prior), qif.measure.g_vuln.posterior(gain, prior, kernel)
    return float(after - before)


@pytest.mark.parametrize("seed", range(50))
def test_a_drawn_bag_leaks_what_a_generic_library_says(seed: int) -> None:
    rng = random.Random(seed)
    etas = drawn_etas(rng)
    k = etas.size
    epsilon = rng.choice((math.inf, math.exp(rng.uniform(-3.0, 3.0))))
    labels, kernel = channel(k, epsilon)
    ours = exact_at(etas, *released(leave_one_out(etas), epsilon))
    theirs = [leakage(etas, member, labels, kernel) for member in range(k)]
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-14)
    problem = find_problem("label-bag-advantage").from_fields(
        {
            "mechanism": "llp" if math.isinf(epsilon) else "llp-geometric",
            "label_epsilon": epsilon,
            "bag": ",".join(map(repr, etas.tolist())),
        }
    )
    answer = evaluate(Point(problem=problem, method=find("labels.bag")()))
    assert answer.lower - 1e-14 <= sum(theirs) / k <= answer.upper + 1e-14


def test_quick_advantages_of_random_bags_are_those_of_the_library() -> None:
    problem = find_problem("label-advantage-at").from_fields(
        {"mechanism": "llp", "prior": "beta(2,3)", "bag_size": 5, "eta": 0.4}
    )
    samples = LabelsSampling(samples=100)._samples(problem, 1).samples  # type: ignore[arg-type]
    rng = np.random.default_rng(find_seed("beta(2,3)", 5))
    others = rng.beta(2, 3, (100, 4))
    labels, kernel = channel(5, math.inf)
    theirs = [leakage(np.append(row, 0.4), 4, labels, kernel) for row in others]
    assert samples == pytest.approx(theirs, rel=1e-9, abs=1e-14)


def find_seed(prior: str, bag_size: int) -> int:
    from privcore.labels.draws import seed_of

    return seed_of(prior, bag_size)
