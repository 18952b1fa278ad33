"""Deltas of k-of-t allocation by a Monte Carlo accountant and proved brackets; a section of bench.py.

`python -m tests.benchmarks.bis FOLDER` runs the accountant of arXiv:2605.07072, bis-mc-accountant at commit
74a1143 in FOLDER, at its published configurations and writes its answers to bis.csv. It draws outputs without
importance sampling, so its time is proportional to 1 / delta.
"""

import csv
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import get_type_hints

import numpy as np

from privcore import find, find_problem
from tests.benchmarks.measure import head, measured, row, verdict

ANSWERS = Path(__file__).with_suffix(".csv")
CONFIGURATIONS = [
    *((sigma, 391, 5, 8.0, 2_000_000, 50_000) for sigma in (0.6, 0.55, 0.5)),
    *((sigma, 10_000, 205, 8.0, 50_000, 1_000) for sigma in (1.42, 1.3)),
    (20.5, 2000, 655, 3.0, 100_000, 100_000),
]
"""Noise multiplier, steps, participations, epsilon, and numbers of samples to remove and to add: with many
steps, its screen lets all outputs of the latter through to the recursion."""
ERRORS = 4.0
"""Standard errors by which an estimate may miss a bracket."""
WANTED = 0.01
"""Relative standard error for which the time of the accountant is extrapolated."""


@dataclass(frozen=True)
class Estimate:
    """One answer of the accountant: mean and standard error of delta, and seconds on one core."""

    sigma: float
    steps: int
    participations: int
    epsilon: float
    direction: str
    samples: int
    mean: float
    error: float
    seconds: float

    @property
    def uncertainty(self) -> float:
        """The standard error, but at least that of one drawn output: without any, it would be 0."""
        return max(self.error, 1.0 / self.samples)


def answers() -> list[Estimate]:
    """Return the answers of the accountant."""
    types = get_type_hints(Estimate)
    with ANSWERS.open(newline="", encoding="utf-8") as file:
        return [
            Estimate(**{name: types[name](value) for name, value in line.items()})
            for line in csv.DictReader(file)
        ]


def table() -> Iterator[str]:
    """Yield both answers side by side."""
    yield head(
        [
            "sigma", "t", "k", "epsilon", "direction", "ours: bracket of delta", "s",
            "bis-mc-accountant", "samples", "s", f"s for {WANTED:.0%}",
        ]
    )  # fmt: skip
    outside = 0
    for peer in answers():
        problem = find_problem("allocation-delta").from_fields(
            {
                "sigma": peer.sigma,
                "steps": peer.steps,
                "participations": peer.participations,
                "epsilon": peer.epsilon,
                "adjacency": peer.direction,
            }
        )
        ours = measured(partial(find("allocation.conditional")().answer, problem, 0), runs=1)
        low, high = ours.value.lower, ours.value.upper
        room = ERRORS * peer.uncertainty
        outside += peer.mean - room > high or peer.mean + room < low
        # The variance of one sample is about delta times a constant.
        variance = peer.samples * peer.error**2 / peer.mean**2 if peer.mean > 0.0 else 1.0 / max(high, 1e-300)
        longer = peer.seconds / peer.samples * variance / WANTED**2
        yield row(
            [
                f"{peer.sigma:g}", f"{peer.steps}", f"{peer.participations}", f"{peer.epsilon:g}",
                peer.direction, f"{low:.4g} - {high:.4g}", f"{ours.seconds:.2f}",
                f"{peer.mean:.4g} +- {peer.uncertainty:.2g}", f"{peer.samples:,}", f"{peer.seconds:.0f}",
                f"{longer:.2g}",
            ]
        )  # fmt: skip
    yield ""
    target = f"no estimate outside of a bracket by {ERRORS:g} standard errors"
    yield verdict(target, f"{outside}", outside == 0)


def main(folder: str) -> None:
    """Run the accountant and write its answers."""
    sys.path.insert(0, folder)
    import bis_calibration  # type: ignore[import-not-found]

    with ANSWERS.open("w", newline="", encoding="utf-8") as file:
        written = csv.DictWriter(file, [field.name for field in fields(Estimate)], lineterminator="\n")
        written.writeheader()
        for sigma, steps, k, epsilon, *counts in CONFIGURATIONS:
            for direction, theirs, samples in zip(
                ("remove", "add"), ("forward", "reverse"), counts, strict=True
            ):
                start = time.process_time()
                _, losses, _ = bis_calibration._worker_generate_chunk(
                    (steps, k, sigma, epsilon, samples, 1, theirs)
                )
                seconds = time.process_time() - start
                values = -np.expm1(epsilon - losses)
                mean = float(values.sum()) / samples
                error = math.sqrt(max(0.0, float(values @ values) / samples - mean**2) / samples)
                found = Estimate(sigma, steps, k, epsilon, direction, samples, mean, error, round(seconds, 1))
                written.writerow(asdict(found))
                file.flush()
                print(found, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
