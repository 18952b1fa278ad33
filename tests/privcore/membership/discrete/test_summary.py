"""Bounds from numbers about a distribution hold for every distribution with these numbers."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from privcore.membership.discrete import summary
from privcore.membership.discrete.summary_problems import MembershipSummaryAdvantage, MembershipSummaryRecords
from privcore.method import Method

ROWS = [
    summary.MembershipValues,
    summary.MembershipLargest,
    summary.MembershipGini,
    summary.MembershipEntropy,
    summary.MembershipCauchy,
]
ALL: list[type[Method]] = [*ROWS, summary.MembershipSummary]


def advantage(p: np.ndarray, n: int) -> float:
    """Return half the mean distance of relative counts from the probabilities, summed over all counts."""
    counts = np.arange(n + 1)
    return float(sum((binom.pmf(counts, n, x) * np.abs(counts / n - x)).sum() for x in p)) / 2.0


def numbers(p: np.ndarray) -> dict[str, float]:
    """Return the numbers about a distribution, moved to their vacuous sides by rounding."""
    up = 1.0 + 1e-12
    others = np.array([np.delete(p, k).sum() for k in range(len(p))])  # 1 - p without cancellation
    return {
        "values": len(p),
        "largest_atom": float(p.max()) / up,
        "gini_simpson": min(1.0, float((p * others).sum()) * up),
        "entropy": float(-(p[p > 0] * np.log(p[p > 0])).sum()) * up,
        "diversity": float(np.sqrt(p * others).sum()) * up,
    }


def ask(**fields: float) -> MembershipSummaryAdvantage:
    return MembershipSummaryAdvantage.from_fields(fields)


@pytest.mark.parametrize("concentration", [0.1, 0.5, 1.0, 10.0])
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_no_drawn_distribution_exceeds_a_bound_from_one_of_its_numbers(n: int, concentration: float) -> None:
    rng = np.random.default_rng(n)
    for size in (2, 3, 7, 30):
        p = rng.dirichlet(np.full(size, concentration))
        truth = advantage(p, n)
        given = numbers(p)
        alone = [ask(records=n, values=size, **{name: x}) for name, x in given.items() if name != "values"]
        for asked in [*alone, ask(records=n, **given)]:
            for method in ALL:
                assert truth <= method().answer(asked, 0).upper * (1.0 + 1e-12), (method.name, p)


def test_the_lower_end_is_the_advantage_of_a_distribution_with_the_properties() -> None:
    # of two values, one number decides the distribution, so the truth is the largest over a grid of it
    p = np.linspace(0.5, 1.0, 20001)
    for n in (1, 3, 10, 50):
        all_of_them = np.array([advantage(np.array([x, 1.0 - x]), n) for x in p[::40]])
        for name, of in {
            "largest_atom": p,
            "gini_simpson": 2.0 * p * (1.0 - p),
            "diversity": 2.0 * np.sqrt(p * (1.0 - p)),
        }.items():
            for limit in (0.2, 0.7, 0.9):
                allowed = (of >= limit if name == "largest_atom" else of <= limit)[::40]
                found = summary.MembershipSummary().answer(ask(records=n, values=2, **{name: limit}), 0)
                most = all_of_them[allowed].max()
                assert found.lower <= most * 1.02
                assert most <= found.upper


def test_equally_likely_values_are_the_worst_for_one_record() -> None:
    found = summary.MembershipSummary().answer(ask(records=1, values=10), 0)
    assert found.lower == pytest.approx(0.9, rel=1e-11) == pytest.approx(found.upper, rel=1e-11)


@pytest.mark.parametrize(("size", "target", "least"), [(2, 0.1, 16), (10, 0.05, 574), (1000, 0.05, 63658)])
def test_the_number_of_records_is_at_least_that_of_equally_likely_values(
    size: int, target: float, least: int
) -> None:
    asked = MembershipSummaryRecords(values=size, target_advantage=target)
    ours = summary.MembershipSummary().answer(asked, 0)
    published = summary.MembershipValues().answer(asked, 0)
    assert least <= ours.lower <= ours.upper <= published.upper
    assert published.upper == math.ceil((size - 1.0) / (4.0 * target**2) * (1.0 + 1e-12))


def test_lemma_24_has_the_largest_diversity_for_a_largest_atom() -> None:
    rng = np.random.default_rng(7)
    for d in (0.2, 0.35, 0.5, 0.8):
        most = summary.of_largest_atom(ask(records=1, values=10, largest_atom=d))
        attained = np.array([d, *np.full(9, (1.0 - d) / 9.0)])
        assert most == pytest.approx(np.sqrt(attained * (1.0 - attained)).sum(), rel=1e-12)
        others = (1.0 - d) * rng.dirichlet(np.ones(9), size=500)
        drawn = np.column_stack([np.full(500, d), others])[others.max(axis=1) <= d]
        assert len(drawn) > 0
        assert np.sqrt(drawn * (1.0 - drawn)).sum(axis=1).max() <= most
        assert np.sqrt(drawn * (1.0 - drawn)).sum(axis=1).min() >= least_diversity(d)


def least_diversity(d: float) -> float:
    """Return the infimum of Lemma 24."""
    times = math.floor(1.0 / d)
    return times * math.sqrt(d * (1.0 - d)) + math.sqrt(d * times * (1.0 - d * times))
