"""Write `shuffled_adversaries.csv`: the best adversaries of a search against a shuffled epoch.

    python tests/privcore/data/shuffled_adversaries.py > tests/privcore/data/shuffled_adversaries.csv

An epoch has two or three batches of one example, and each order leaves one out. The adversary chooses the
gradient of every example in every step, from -1 to 1, by whether each earlier output is above a cut, and the
divergence over all orders is summed over a grid of all outputs. The search, by random starts and single
changes, takes about ten minutes; the test repeats the sum for the adversaries that it found.
"""

import csv
import itertools
import json
import math
import sys
from collections.abc import Iterator

import numpy as np

RELATIONS = ("zero-out", "replace-one", "add-remove")
SETTINGS = {2: [(2.0, 0.1), (1.0, 0.3), (1.0, 1.0), (2 / 3, 1.0)], 3: [(2.0, 0.1), (1.0, 0.5), (2 / 3, 1.0)]}
"""Sigma and epsilon by the number of steps."""
WIDTHS = {2: 0.04, 3: 0.1}
"""Cells of an output: the sum errs by less than 1e-3 of the divergence; cuts are between cells."""
LARGEST = 6.5
LOOKS = {2: 240, 3: 60}


def outputs(width: float, s: float) -> np.ndarray:
    """Return the middles of the cells of an output."""
    count = math.ceil((LARGEST + s) / width)
    found: np.ndarray = (np.arange(-count, count) + 0.5) * width
    return found


def densities(gradient: np.ndarray, cuts: np.ndarray, s: float, grid: np.ndarray) -> list[np.ndarray]:
    """Return the probability of each cell in each step, given all earlier outputs, as arrays that broadcast.

    Args:
        gradient: Gradients of one example, in the order of the steps, of 1, 2 and 4 answers to the cuts.
        cuts: The cut of each output but the last one.
        s: Inverse noise multiplier.
        grid: Middles of the cells.
    """
    steps, found, first = len(cuts) + 1, [], 0
    for step in range(steps):
        means = gradient[first : first + 2**step] * s
        first += 2**step
        answer = np.zeros((1,) * steps, dtype=int)
        for k in range(step):
            above = (grid > cuts[k]).reshape([-1 if axis == k else 1 for axis in range(steps)])
            answer = 2 * answer + above
        here = grid.reshape([-1 if axis == step else 1 for axis in range(steps)])
        found.append(np.exp(-0.5 * (here - means[answer]) ** 2) / math.sqrt(2.0 * math.pi))
    return found


def divergence(
    steps: int, sigma: float, epsilon: float, relation: str, direction: str, policy: np.ndarray, width: float
) -> float:
    """Return the hockey-stick divergence of an adversary.

    Args:
        steps: Number of batches, each of one example.
        sigma: Noise multiplier.
        epsilon: Of the divergence.
        relation: `zero-out`, `replace-one` (by the opposite gradient) or `add-remove`.
        direction: `remove`: from the data set with the example; `add`: the reverse.
        policy: The cuts, then the gradients of the example and of all others, as in `densities`.
        width: Width of the cells of an output.
    """
    s = 1.0 / sigma
    grid = outputs(width, s)
    cuts, gradients = policy[: steps - 1], policy[steps - 1 :].reshape(steps + 1, 2**steps - 1)
    example, others = gradients[0], gradients[1:]
    of = {name: densities(gradient, cuts, s, grid) for name, gradient in enumerate([example, *others])}
    neighbour = {"zero-out": 0.0 * example, "replace-one": -example}

    def mixture(first: list[np.ndarray] | None) -> np.ndarray:
        names = range(steps + 1) if first is not None else range(1, steps + 1)
        orders = list(itertools.permutations(names, steps))
        total = np.zeros((grid.size,) * steps)
        for order in orders:
            product = np.ones((1,) * steps)
            for step, name in enumerate(order):
                product = product * (first if name == 0 and first is not None else of[name])[step]
            total += product
        return total / len(orders)

    p = mixture(of[0])
    other = None if relation == "add-remove" else densities(neighbour[relation], cuts, s, grid)
    q = mixture(other)
    if direction == "add":
        p, q = q, p
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()) * width**steps


def starts(steps: int, rng: np.random.Generator, width: float) -> Iterator[np.ndarray]:
    """Yield policies: all others opposed, equal, or 0, and random ones that switch at a cut."""
    size = 2**steps - 1
    for other in (-1.0, 1.0, 0.0):
        yield np.concatenate((np.zeros(steps - 1), np.ones(size), np.full(steps * size, other)))
    while True:
        cuts = np.round(rng.normal(0.0, 0.7, steps - 1) / width) * width
        shared = rng.choice([-1.0, 0.0, 1.0], size)
        example = np.ones(size) if rng.random() < 0.7 else rng.choice([-1.0, 0.0, 1.0], size)
        others = np.tile(shared, steps) if rng.random() < 0.7 else rng.choice([-1.0, 0.0, 1.0], steps * size)
        yield np.concatenate((cuts, example, others))


def best(
    steps: int, sigma: float, epsilon: float, relation: str, direction: str, rng: np.random.Generator
) -> tuple[float, np.ndarray]:
    """Return the largest divergence of the search, and its adversary."""
    width = WIDTHS[steps]
    coarse = 2.0 * width

    def of(policy: np.ndarray) -> float:
        return divergence(steps, sigma, epsilon, relation, direction, policy, coarse)

    tried = [(of(each), each) for each in itertools.islice(starts(steps, rng, coarse), LOOKS[steps] // 2)]
    most, policy = max(tried, key=lambda each: each[0])
    for _ in range(LOOKS[steps] // 2):
        changed = policy.copy()
        k = int(rng.integers(policy.size))
        if k < steps - 1:
            changed[k] += coarse * float(rng.integers(-4, 5))
        else:
            changed[k] = float(rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0, rng.uniform(-1.0, 1.0)]))
        found = of(changed)
        if found > most:
            most, policy = found, changed
    return divergence(steps, sigma, epsilon, relation, direction, policy, width), policy


def main() -> None:
    """Write the table to the standard output."""
    rng = np.random.default_rng(19)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["steps", "sigma", "epsilon", "relation", "direction", "divergence", "policy"])
    for steps, settings in SETTINGS.items():
        for (sigma, epsilon), relation, direction in itertools.product(
            settings, RELATIONS, ("remove", "add")
        ):
            found, policy = best(steps, sigma, epsilon, relation, direction, rng)
            text = json.dumps([float(f"{x:.6g}") for x in policy])
            writer.writerow([steps, repr(sigma), epsilon, relation, direction, f"{found:.6g}", text])
            sys.stdout.flush()


if __name__ == "__main__":
    main()
