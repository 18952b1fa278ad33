"""The table of caught bugs in docs/auditing.md: its powers, its counts, and whether the two agree."""

import csv
import io
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from scipy.special import bdtr, bdtrc

from flows.spec.grid import expand
from flows.spec.sweep import load
from privcore import Answer, Point, evaluate, find, find_problem
from privcore.auditing import params as audit_params
from privcore.auditing.canary_training import CLIP_NORM, PULL, recipe
from privcore.auditing.optimal import expected_correct

pytestmark = [pytest.mark.sampled(5), pytest.mark.xdist_group("detection")]  # they share the powers

ROOT = Path(__file__).resolve().parents[3]
PRIVSWEEP = str(Path(sys.executable).with_name("privsweep"))
TEXT = (ROOT / "docs/auditing.md").read_text()
(QUERY,) = re.findall(r"```sql\n(with trained as .*?)```", TEXT, re.DOTALL)
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| ") and line.strip("| ").split(" ")[0] in audit_params.BUG.choices
]

STEPS, RATE, DELTA = 500, 0.1, 1e-5
CLAIMS = {1: 8.45, 2: 4.58, 4: 2.58}
GUESSES = {1000: 200, 5000: 200, 20_000: 600}
FAMILIES = ("approximate", "gaussian")
CHANCE = 1e-4
"""Probability below which a count in a cell contradicts its power: one of 180 tails falls below it in 2 %."""
FOUR_ERRORS = 4.0
"""Standard errors that a mean may be off."""


@dataclass(frozen=True)
class Cell:
    """A cell of the table: how many of the runs caught a bug, and the power that is printed before."""

    bug: str
    claim: int
    canaries: int
    family: str
    printed: str
    caught: int
    runs: int


def cells() -> Iterator[Cell]:
    for bug, claim, *texts in ROWS:
        keys = [(family, canaries) for family in FAMILIES for canaries in GUESSES]
        for (family, canaries), text in zip(keys, texts, strict=True):
            found = re.fullmatch(r"(\d\.\d{3}): (\d) of (\d)", text)
            assert found, text
            printed, caught, runs = found.groups()
            yield Cell(bug, int(claim), canaries, family, printed, int(caught), int(runs))


def mu_of(bug: str, sigma: float, canaries: int) -> float:
    """Distance between both distributions of the scores, in standard deviations, by the recipe of the bug."""
    how = recipe(sigma, RATE, bug)
    pull, noise = 1.0, how.noise / CLIP_NORM
    if math.isinf(how.example_norm):
        drawn = how.rate * canaries / 2.0  # that many canaries in a batch, orthogonal to one another
        pull = PULL * min(1.0, how.mean_norm * how.batch / (PULL * CLIP_NORM * math.sqrt(drawn)))
    variance = noise**2 + pull**2 * how.rate * (1.0 - how.rate) / 2.0
    return pull * how.rate * math.sqrt(STEPS / variance)


@cache
def powers() -> dict[tuple[float, int, str], list[tuple[float, Answer]]]:
    """Return the answers to the points about power by claim, canaries and family, each with its mu."""
    found: dict[tuple[float, int, str], list[tuple[float, Answer]]] = {}
    for point in expand(load("audit-detection").grids):
        if point.problem.name == "audit-power":
            fields = point.problem.as_fields()
            key = float(fields["claimed_epsilon"]), int(fields["canaries"]), str(fields["family"])
            found.setdefault(key, []).append((float(fields["mu"]), evaluate(point)))
    return found


def power(cell: Cell) -> Answer:
    mu = mu_of(cell.bug, CLAIMS[cell.claim], cell.canaries)
    (answer,) = [
        a for m, a in powers()[float(cell.claim), cell.canaries, cell.family] if abs(m - mu) <= 5.001e-5
    ]
    return answer


# -------------------------------------------------------------------------------- known in advance


def test_the_table_has_a_cell_for_every_bug_claim_family_and_number_of_canaries() -> None:
    assert {(c.bug, c.claim, c.canaries, c.family) for c in cells()} == {
        (bug, claim, canaries, family)
        for bug in audit_params.BUG.choices
        for claim in CLAIMS
        for canaries in GUESSES
        for family in FAMILIES
    }
    assert len(ROWS) == 15


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_correct_training_is_as_private_as_it_claims_and_hardly_more(claim: int) -> None:
    fields = {
        "sigma": CLAIMS[claim],
        "steps": STEPS,
        "sampling_probability": RATE,
        "delta": DELTA,
    }
    problem = find_problem("poisson-epsilon").from_fields(fields)
    found = evaluate(Point(problem=problem, method=find("poisson.certified").from_knobs({"tolerance": 1e-3})))
    assert 0.99 * claim <= found.lower <= found.upper <= claim


@pytest.mark.thorough
def test_the_powers_are_those_of_what_the_bugs_do_in_a_step() -> None:
    for cell in cells():
        found = power(cell)
        assert f"{found.lower:.3f}" == cell.printed, cell
        assert found.upper - found.lower <= 3.5e-3, cell


def test_every_run_is_of_a_setting_of_the_table() -> None:
    points = [p for p in expand(load("audit-detection").grids) if p.problem.name == "audit-training"]
    runs: dict[tuple[object, ...], int] = {}
    for point in points:
        f = point.problem.as_fields()
        assert (f["steps"], f["sampling_probability"], f["delta"]) == (STEPS, RATE, DELTA)
        assert f["guesses"] == GUESSES[int(f["canaries"])]
        key = f["bug"], f["sigma"], f["canaries"]
        runs[key] = runs.get(key, 0) + 1
    assert runs == {(c.bug, CLAIMS[c.claim], c.canaries): c.runs for c in cells()}
    first = {point.id for point in expand(load("audit-training").grids)}
    assert first <= {point.id for point in points}, "that sweep has the first run of each setting"


# ------------------------------------------------------------------------------------- observed


@pytest.mark.thorough
def test_the_counts_are_consistent_with_the_powers() -> None:
    for cell in cells():
        found = power(cell)
        assert bdtrc(cell.caught - 1, cell.runs, found.upper) >= CHANCE or cell.caught == 0, cell
        assert bdtr(cell.caught, cell.runs, found.lower) >= CHANCE, cell


@pytest.mark.thorough
@pytest.mark.parametrize("family", FAMILIES)
def test_as_many_are_caught_altogether_as_expected(family: str) -> None:
    ours = [(cell, power(cell).lower) for cell in cells() if cell.family == family]
    variance = sum(cell.runs * p * (1.0 - p) for cell, p in ours)
    excess = sum(cell.caught - cell.runs * p for cell, p in ours)
    assert variance > 2.0, "some powers are neither 0 nor 1"
    assert abs(excess) <= FOUR_ERRORS * math.sqrt(variance)


def test_no_correct_run_is_suspected() -> None:
    assert all(cell.caught == 0 for cell in cells() if cell.bug == "none")


@pytest.mark.soak
def test_the_query_prints_the_table_and_the_scores_are_those_of_the_theory(tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "store")]
    subprocess.run(
        [PRIVSWEEP, "run", "audit-detection", *store, "--engine", "serial"], check=True, capture_output=True
    )

    def printed(query: str) -> list[list[str]]:
        done = subprocess.run(
            [PRIVSWEEP, "sql", *store, "--csv", query], check=True, capture_output=True, text=True
        )
        return list(csv.reader(io.StringIO(done.stdout)))[1:]

    assert printed(QUERY) == ROWS

    # The mean of the correct guesses is the finer check, also where the power is 0 or 1.
    counts = printed(
        "select bug, sigma, canaries, avg(cast(split_part(detail, ' ', 1) as int)), count(*) "
        "from audit_training group by all"
    )
    assert len(counts) == 45
    for bug, sigma, canaries, mean, runs in counts:
        m, guesses = int(canaries), GUESSES[int(canaries)]
        expected = expected_correct(m, guesses, mu_of(bug, float(sigma), m))
        deviation = math.sqrt(expected * (1.0 - expected / guesses) / int(runs))
        assert abs(float(mean) - expected) <= FOUR_ERRORS * deviation + 1.0, (bug, sigma, canaries)
