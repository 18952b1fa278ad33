"""The numbers in docs/reproduction-membership.md against the output of its queries on a new store."""

import itertools
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.special import bdtrc, ndtr

from flows.figures import papers
from flows.spec.grid import expand
from flows.spec.sweep import load
from privcore import METHODS, find, find_problem
from privcore.distributions.record_notation import law
from privcore.membership.discrete.deviation import largest_constant, least_constant
from privcore.membership.discrete.diversity import LARGEST, LEAST, diversity_bound
from privcore.membership.discrete.maximum import dataset_advantage
from privcore.membership.experiments.residuals import linear
from privcore.membership.learner.sphere import most_records
from tests.flows.support.claims import ROOT, Claims, agree

CLAIMS = Claims("reproduction-membership.md")
PAGE = (ROOT / "docs" / "membership.md").read_text()
SWEEPS = papers.SWEEPS["membership"]


# ------------------------------------------------------------------------------- numbers without a sweep


def advantage(release: Callable[[Sequence[int]], dict[int, float]], p: Sequence[float], n: int) -> float:
    """Distance of a release and a training record from a release and a fresh one, over all data sets."""
    joint: dict[int, np.ndarray] = {}
    for records in itertools.product(range(len(p)), repeat=n):
        probability = math.prod(p[z] for z in records)
        for theta, chance in release(records).items():
            joint.setdefault(theta, np.zeros(len(p)))[records[0]] += probability * chance
    return 0.5 * sum(float(np.abs(row - row.sum() * np.array(p)).sum()) for row in joint.values())


def table() -> list[float]:
    """Column D of Table 1, row by row."""
    return [diversity_bound(c, n) for n in (1000, 5000, 10_000) for c in (4.30, 6.74, 9.20)]


def constants() -> list[float]:
    """Constants of Corollary 15 as derived, then the sharp ones at n = 5 and in the limit."""
    return [LEAST, LARGEST, least_constant(5), largest_constant(5), math.exp(-1.0), math.sqrt(0.5 / math.e)]


def maximum() -> list[float]:
    """Advantage on the maximum of n bits over (1 - p)^n, for p = 0.3."""
    return [advantage(lambda z: {max(z): 1.0}, (0.7, 0.3), n) / 0.7**n for n in (1, 2, 4, 8)]


def response() -> list[float]:
    """Randomized response to one of three values at epsilon 2 ln 2: its ratio, advantage, tanh(eps / 2)."""
    epsilon = 2.0 * math.log(2.0)
    true, other = (x / (math.exp(epsilon) + 2.0) for x in (math.exp(epsilon), 1.0))

    def release(z: Sequence[int]) -> dict[int, float]:
        return {k: true if k == z[0] else other for k in range(3)}

    return [true / other, advantage(release, (1 / 3, 1 / 3, 1 / 3), 1), math.tanh(0.5 * epsilon)]


def equation_9() -> list[float]:
    """Equation 9 at equal odds for epsilon 0.6 and 0.7, and tanh(epsilon / 4) there."""
    return [f(x) for f in (math.expm1, lambda x: math.tanh(0.25 * x)) for x in (0.6, 0.7)]


def identity() -> list[float]:
    """Mean of both rates, and accuracy, of an attack that calls all fresh if nine of ten are."""
    fresh_share, true_negative, true_positive = 0.9, 1.0, 0.0
    return [true_negative + true_positive, fresh_share * true_negative + (1.0 - fresh_share) * true_positive]


def moments() -> list[float]:
    """Coordinates of L = (x x', x y) for two features, rank of its covariance, dimension of its values."""
    rng = np.random.default_rng(0)
    x, e = rng.standard_normal((1000, 2)), rng.standard_normal(1000)
    y = x.sum(axis=1) + e
    values = np.column_stack(
        [x[:, 0] ** 2, x[:, 0] * x[:, 1], x[:, 1] * x[:, 0], x[:, 1] ** 2, x[:, 0] * y, x[:, 1] * y]
    )
    slopes = np.array(
        [
            [2 * x[0, 0], 0, 0],
            [x[0, 1], x[0, 0], 0],
            [x[0, 1], x[0, 0], 0],
            [0, 2 * x[0, 1], 0],
            [y[0] + x[0, 0], x[0, 0], x[0, 0]],
            [x[0, 1], y[0] + x[0, 1], x[0, 1]],
        ]
    )
    return [values.shape[1], int(np.linalg.matrix_rank(np.cov(values.T))), int(np.linalg.matrix_rank(slopes))]


def insensitive() -> list[float]:
    """Probabilities of fresh losses up to 1e-2, 1e-4, 1e-6, noise 0.1: squared; insensitive up to 0.1."""
    levels = (1e-2, 1e-4, 1e-6)
    squared = [2.0 * ndtr(math.sqrt(level) / 0.1) - 1.0 for level in levels]
    return squared + [2.0 * ndtr((0.1 + level) / 0.1) - 1.0 for level in levels]


def remainder() -> list[float]:
    """P(B > gamma n p), which Lemma 29 leaves out, for p = 0.1, gamma = 2, n = 100; e^-n; Hoeffding."""
    n, p, odds = 100, 0.1, 2.0
    return [float(bdtrc(20, n, p)), math.exp(-n), math.exp(-2.0 * n * (p * (odds - 1.0)) ** 2)]


def first_time() -> list[float]:
    """For p = 0.01, n = 100: p (1 - p)^n; first occurrence at n + 1; at most n."""
    n, p = 100, 0.01
    at = [p * (1.0 - p) ** (k - 1) for k in range(1, n + 2)]
    return [p * (1.0 - p) ** n, at[-1], math.fsum(at[:-1])]


def one_record() -> list[float]:
    """Proposition 25, averaged over a normal record, for n = 1 and one coordinate; the truth."""
    return [0.5 + 0.5 * math.sqrt(2.0 / math.pi), 1.0]


def linear_target() -> list[float]:
    """Shares of fresh losses of least squares up to 1e-6 and 0.01 for d = 1200 and 2000, with target x_1."""
    shares = []
    for d in (1200, 2000):
        fresh = [linear(d, 1000, 0.1, (d, 1000, run), 1.0)[1] for run in range(3)]
        shares.append([float(np.mean([each.share(level) for each in fresh])) for level in (1e-6, 1e-2)])
    return [shares[0][0], shares[1][0], shares[0][1], shares[1][1]]


def constant() -> list[float]:
    """Advantage on a learner that is deterministic and ignores its records, so that it is 0-DP."""
    return [advantage(lambda z: {0: 1.0}, (0.7, 0.3), 3)]


def widths() -> list[float]:
    """Width of the interval of C for K = 100 and a largest atom of 0.2, 0.25 and 0.5."""

    def width(d: float, size: int = 100) -> float:
        most = math.sqrt(d * (1 - d)) + math.sqrt((1 - d) * (size - 2 + d))
        full = math.floor(1 / d)
        left = d * full
        return most - full * math.sqrt(d * (1 - d)) - math.sqrt(left * (1 - left))

    return [width(d) for d in (0.2, 0.25, 0.5)]


def diversities() -> list[float]:
    """Random distributions, and the number that violate H <= C, C <= sqrt(K GS), or 2 GS <= C."""
    rng, wrong = np.random.default_rng(1), 0
    for _ in range(2000):
        p = rng.dirichlet(np.full(int(rng.integers(2, 30)), rng.choice([0.1, 1.0, 10.0])))
        p = p[p > 0.0]
        c, gini = float(np.sqrt(p * (1.0 - p)).sum()), float(1.0 - (p * p).sum())
        slack = 1e-12
        entropy = float(-(p * np.log(p)).sum())
        wrong += not (
            entropy <= c + slack and c <= math.sqrt(p.size * gini) + slack and 2 * gini <= c + slack
        )
    return [2000, wrong]


def sphere() -> list[float]:
    """Least s for which the bound of Appendix B is below 1, its largest n there; bound and n at 10^6."""
    least = math.ceil(math.exp(12.0))
    return [least, most_records(least), 1e6 ** (3.0 - 0.25 * math.log(1e6)), most_records(10**6)]


def infinitely_many() -> list[float]:
    """Sizes of the training set, and for how many Corollary 15 applies: geometric(0.9), uniform(10)."""
    corollary, problem = find("membership.corollary")(), find_problem("membership-advantage")
    sizes = [10**k for k in range(1, 13)]
    applies = [
        sum(corollary.applies(problem.from_fields({"law": text, "records": n})) is None for n in sizes)
        for text in ("geometric(0.9)", "uniform(10)")
    ]
    assert not law("geometric(0.9)").finite
    return [len(sizes), *applies]


def ends(question: str, published: str, **fields: float) -> list[float]:
    """Published upper bound from numbers of a distribution, and both of our ends, from above."""
    asked = find_problem(f"membership-summary-{question}").from_fields(fields)
    ours = find("membership.summary")().answer(asked, 0)
    return [find(f"membership.{published}")().answer(asked, 0).upper, ours.upper, ours.lower]


def values() -> list[float]:
    """Published, our and attained advantage of at most 10 values, and numbers of records."""
    return [
        *ends("advantage", "values", values=10, records=100),
        *ends("records", "values", values=10, target_advantage=0.05),
    ]


def entropies() -> list[float]:
    """The same for a Gini-Simpson index of 0.5, and an entropy of 1."""
    return [
        *ends("advantage", "gini", values=20, gini_simpson=0.5, records=100),
        *ends("advantage", "entropy", values=20, entropy=1.0, records=100),
    ]


def remark() -> list[float]:
    """Least number of Gaussian records, by Theorem 13 and by Remark 13."""
    return [
        find(f"membership.{name}")().answer(asked, 0).upper
        for asked in (
            find_problem("membership-mean-records").from_fields({"coordinates": d, "target_advantage": eps})
            for d, eps in ((1, 0.1), (100, 0.01))
        )
        for name in ("mean", "rate", "remark")
    ]


def caps() -> list[float]:
    """Published bound at 10^6 features and 24 records; ours at 20,000 features and 10 records."""
    kind = find_problem("membership-sphere-security")
    return [
        find(f"membership.{name}")().answer(kind.from_fields({"sphere_dimension": s, "records": n}), 0).upper
        for name, s, n in (("sphere", 10**6, 24), ("caps", 20_000, 10))
    ]


def given_records() -> list[float]:
    """Largest accuracy given the training set: counts 3 and 1 of two equal values; continuous records."""
    return [
        0.5 + 0.5 * dataset_advantage(pairs, 1.0) for pairs in ([(3, 0.5), (1, 0.5)], [(1, 0.0), (1, 0.0)])
    ]


def unbounded() -> list[float]:
    """Delta at epsilon 1 of Gaussian noise for shifts of 1, 5, 10; advantage on a noisy mean."""
    deltas = [float(ndtr(0.5 * s - 1.0 / s) - math.e * ndtr(-0.5 * s - 1.0 / s)) for s in (1.0, 5.0, 10.0)]
    asked = find_problem("membership-mean-advantage").from_fields(
        {"coordinates": 1, "records": 10**6, "release_noise": 1.0}
    )
    return [*deltas, find("membership.quadrature")().answer(asked, 0).upper]


TESTS: dict[str, Callable[[], list[float]]] = {
    "table": table,
    "linear-target": linear_target,
    "constants": constants,
    "maximum": maximum,
    "response": response,
    "equation-9": equation_9,
    "identity": identity,
    "moments": moments,
    "insensitive": insensitive,
    "remainder": remainder,
    "first-time": first_time,
    "one-record": one_record,
    "constant": constant,
    "widths": widths,
    "diversities": diversities,
    "sphere": sphere,
    "infinitely-many": infinitely_many,
    "values": values,
    "largest-atom": lambda: ends("advantage", "largest", values=10, largest_atom=0.6, records=100),
    "entropies": entropies,
    "from-diversity": lambda: ends("advantage", "cauchy", diversity=6.74, records=1000),
    "remark": remark,
    "caps": caps,
    "given-records": given_records,
    "unbounded": unbounded,
}


MINUTES = pytest.param("linear-target", marks=pytest.mark.soak)


@pytest.mark.parametrize("name", [MINUTES, *(name for name in TESTS if name not in MINUTES.values)])
def test_a_number_without_a_query_is_what_its_test_computes(name: str) -> None:
    assert agree(TESTS[name](), CLAIMS.printed_of(name))


# ------------------------------------------------------------------------------- the table


def test_the_rows_are_numbered_and_each_has_a_verdict_and_a_command() -> None:
    CLAIMS.check_rows(TESTS)


def test_every_query_has_its_row_in_the_table_and_prints_numbers() -> None:
    CLAIMS.check_queries(at_least=40)


def test_column_d_of_table_1_is_printed_there_rounded() -> None:
    """The paper has two digits."""
    printed = [0.07, 0.11, 0.15, 0.03, 0.05, 0.07, 0.02, 0.03, 0.05]
    assert [round(value, 2) for value in table()] == printed


def test_the_sweeps_of_the_table_exist() -> None:
    assert [load(name).name for name in SWEEPS] == list(SWEEPS)


@pytest.mark.parametrize("name", SWEEPS[3:])
def test_every_method_of_a_sweep_applies_to_its_points(name: str) -> None:
    for point in expand(load(name).grids):
        assert point.method.applies(point.problem) is None, point.canonical


# ------------------------------------------------------------------------------- the page of the topic


def test_the_page_has_three_commands_and_names_every_problem_and_method() -> None:
    assert len(re.findall(r"^\$ privsweep membership ", PAGE, re.MULTILINE)) == 3
    mine = [method for method in METHODS if method.name.startswith("membership.")]
    assert len(mine) >= 30
    for method in mine:
        assert re.search(rf"`(membership)?\.{method.name.split('.')[1]}`", PAGE), method.name
        for problem in method.problems:
            assert f"`{problem.name}`" in PAGE, problem.name


@pytest.mark.soak
def test_the_queries_print_the_numbers_of_the_table(tmp_path: Path) -> None:
    CLAIMS.check_numbers(SWEEPS, tmp_path / "store")
