"""Worst learner of discrete records against enumerated learners, limits, many digits and simulations."""

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from privcore.distributions.record_notation import law
from privcore.membership.discrete.diversity import diversity
from privcore.membership.discrete.enumeration import enumerated
from privcore.membership.discrete.exact import record_risk
from privcore.membership.discrete.excess import at_least, excess
from privcore.membership.discrete.worst_case import worst_advantage
from tests.privcore.membership.discrete.learners import Records, advantage, ask, partitions, written

ODDS = (0.3, 0.8, 1.0, 1.25, 3.0)
ROUNDING = 1e-12
"""Error bound of sums of doubles in a test."""


# ---------------------------------------------------------------------- all learners


@pytest.mark.parametrize("odds", ODDS)
@pytest.mark.parametrize("p", [0.5, 0.3, 0.05])
@pytest.mark.parametrize("records", [1, 2, 4, 6])
def test_no_deterministic_learner_of_bits_exceeds_the_worst_and_one_attains_it(
    records: int, p: float, odds: float
) -> None:
    data = Records.of([p, 1.0 - p], records)
    found = [data.advantage(released, odds) for released in partitions(records + 1)]
    assert max(found) == pytest.approx(advantage(f"bernoulli({p})", records, odds), abs=ROUNDING)
    assert max(found) == pytest.approx(found[-1], abs=ROUNDING), "the counts themselves"


@pytest.mark.parametrize("weights", [[0.5, 0.3, 0.2], [1 / 3, 1 / 3, 1 / 3], [0.9, 0.06, 0.04]])
def test_no_deterministic_learner_of_two_records_of_three_values_exceeds_the_worst(
    weights: list[float],
) -> None:
    data = Records.of(weights, 2)
    for odds in ODDS:
        found = max(data.advantage(released, odds) for released in partitions(len(data.counts)))
        assert found == pytest.approx(advantage(written(weights), 2, odds), abs=ROUNDING)


@pytest.mark.parametrize("records", [3, 4, 5, 6])
def test_no_drawn_learner_of_three_values_exceeds_the_worst(records: int) -> None:
    rng = np.random.default_rng(records)
    for _ in range(12):
        weights = rng.dirichlet(np.ones(3)).tolist()
        data = Records.of(weights, records)
        for odds in ODDS:
            worst = worst_advantage(law(written(sorted(weights))), records, odds)[1] + ROUNDING
            for _ in range(10):
                released = rng.integers(0, rng.integers(2, len(data.counts)), len(data.counts))
                assert data.advantage(released, odds) <= worst
                channel = rng.dirichlet(np.full(4, 0.2), len(data.counts))
                assert data.of_channel(channel, odds) <= worst


@pytest.mark.parametrize("odds", ODDS)
def test_one_bit_for_every_value_is_as_bad_as_all_records(odds: float) -> None:
    weights, records = [0.5, 0.3, 0.2], 6
    data = Records.of(weights, records)
    bits = data.of_learner(
        lambda counts: tuple(n >= odds * records * p for n, p in zip(counts, weights, strict=True)), odds
    )
    assert bits == pytest.approx(advantage(written(weights), records, odds), abs=ROUNDING)


# ---------------------------------------------------------------------- enumeration and digits


@pytest.mark.parametrize("odds", ["1/3", "4/5", "1", "5/4", "3"])
@pytest.mark.parametrize("text", ["bernoulli(0.1)", "atoms(0.5,0.3,0.2)", "mixed(0.25,uniform(3))"])
def test_the_formula_is_the_enumeration_of_all_data_sets(text: str, odds: str) -> None:
    for records in (1, 2, 3, 5, 8):
        truth = float(enumerated(law(text), records, Fraction(odds)))
        assert advantage(text, records, float(Fraction(odds))) == pytest.approx(truth, abs=1e-14, rel=1e-12)


def mean_excess(n: int, p: float, odds: float) -> mpmath.mpf:
    """Return the term of an atom in the advantage, in many digits, as a sum over all relevant counts."""
    with mpmath.workdps(40):
        q, threshold = 1 - mpmath.mpf(p), mpmath.mpf(odds) * n * mpmath.mpf(p)
        up = odds >= 1.0
        count = int(mpmath.floor(threshold)) + (1 if up else 0)
        if count > n:
            return mpmath.mpf(0)
        law_at = mpmath.binomial(n, count) * mpmath.mpf(p) ** count * q ** (n - count)
        total, steps = mpmath.mpf(0), 0
        while 0 <= count <= n and (steps < 10 or law_at * n > total * mpmath.mpf(10) ** -25):
            total += abs(count - threshold) * law_at
            law_at *= (
                (n - count) * mpmath.mpf(p) / ((count + 1) * q)
                if up
                else count * q / ((n - count + 1) * mpmath.mpf(p))
            )
            count, steps = count + (1 if up else -1), steps + 1
        return total / n / min(1, mpmath.mpf(odds))


def test_every_atom_is_enclosed_to_many_digits() -> None:
    rng = np.random.default_rng(4)
    for n in (1, 2, 7, 40, 1000, 30_000, 10**9):
        for _ in range(25):
            p = float(10.0 ** rng.uniform(-2.0 - math.log10(n), -0.001))
            near = 1.0 + 8.0 * rng.standard_normal() / math.sqrt(n * p + 1.0)
            odds = float(rng.choice([1.0, 10.0 ** rng.uniform(-6.0, 6.0), abs(near)]))
            if n * p * (1.0 - p) > 1e4:  # the reference would have too many terms
                continue
            truth = mean_excess(n, p, odds)
            values, errors = excess(n, np.array([p]), np.array([float(1 - mpmath.mpf(p))]), odds, 0.0)
            assert abs(values[0] - truth) <= errors[0] + 1e-290, (n, p, odds)
            assert errors[0] <= 1e-8 * truth + 1e-290, (n, p, odds)


@pytest.mark.parametrize("n", [10**6, 10**9, 10**12])
def test_the_probability_of_many_equal_records_is_enclosed(n: int) -> None:
    """The reference integrates the beta density in 40 digits."""
    for p, deviations in ((0.5, 0.0), (0.3, 1.3), (0.2, -2.0), (1e-4, 0.6)):
        sigma = math.sqrt(n * p * (1.0 - p))
        count = math.floor(n * p + deviations * sigma) + 1
        with mpmath.workdps(40):
            a, b = mpmath.mpf(count), mpmath.mpf(n - count + 1)
            log_beta = mpmath.loggamma(a + b) - mpmath.loggamma(a) - mpmath.loggamma(b)
            width, middle = mpmath.mpf(sigma / n), mpmath.mpf(p)
            truth = mpmath.quad(
                lambda x: mpmath.exp(log_beta + (a - 1) * mpmath.log(x) + (b - 1) * mpmath.log1p(-x)),  # noqa: B023
                [x for k in range(18, -1, -1) if (x := middle - k * width) > 0],
            )
        low, high = at_least(n, np.array([p]), np.array([1.0 - p]), np.array([float(count)]))
        assert low[0] <= truth <= high[0]
        assert high[0] - low[0] <= 1e-8 * truth


def mode_probability(n: int, p: float) -> mpmath.mpf:
    """Return q times the probability of the mode, the risk at odds 1, by the gamma function."""
    with mpmath.workdps(50):
        m, p = int(mpmath.floor(n * mpmath.mpf(p))), mpmath.mpf(p)
        log_law = mpmath.loggamma(n) - mpmath.loggamma(m + 1) - mpmath.loggamma(n - m)
        return mpmath.exp(log_law + m * mpmath.log(p) + (n - m) * mpmath.log1p(-p))


@pytest.mark.parametrize("n", [10**9, 10**12])
def test_the_risk_of_a_record_is_right_to_many_digits_for_many_records(n: int) -> None:
    for p in (3e-13, 1e-9, 2.5e-9, 1e-4, 0.1, 0.5, 0.9, 1.0 - 2.0**-30):
        low, high = record_risk(p, 1.0 - p, n, 1.0, 0.0)
        truth = mode_probability(n, p)
        assert low <= truth <= high
        assert high - low <= 1e-11 * truth


@pytest.mark.parametrize("s", [1.2, 1.5, 2.0, 2.1, 3.0])
def test_heavy_tails_are_summed_to_many_digits(s: float) -> None:
    """The reference sums the first atoms in 25 digits, and the other atoms by the zeta function of mpmath."""
    n = 500
    with mpmath.workdps(25):
        exponent = mpmath.mpf(s)
        zeta, places = mpmath.zeta(exponent), 4 * math.ceil((n / float(mpmath.zeta(s))) ** (1.0 / s))
        total = mpmath.mpf(0)
        for k in range(1, places + 1):
            p = k**-exponent / zeta
            m = int(mpmath.floor(n * p))
            total += p * mpmath.binomial(n - 1, m) * p**m * (1 - p) ** (n - m)
        for j in range(40):
            power = exponent * (j + 1)
            total += (-1) ** j * mpmath.binomial(n, j) * mpmath.zeta(power, places + 1) / zeta ** (j + 1)
    low, high = worst_advantage(law(f"zipf({s})"), n, 1.0)
    assert low <= total <= high
    assert high - low <= 1e-11


@pytest.mark.parametrize("odds", [0.7, 1.0, 1.4])
@pytest.mark.parametrize("text", ["zipf(1.2)", "zipf(1.5)", "geometric(0.999)", "mixed(0.2,zipf(1.3))"])
def test_blocks_of_atoms_enclose_their_sum(text: str, odds: float) -> None:
    exact = worst_advantage(law(text), 10**6, odds)
    blocks = worst_advantage(law(text), 10**6, odds, heads=500)
    assert blocks[0] <= exact[0] <= exact[1] <= blocks[1]
    assert blocks[1] - blocks[0] <= 0.05 * exact[1]


# ---------------------------------------------------------------------- limits and monotonicity


def test_one_record_reveals_the_probability_of_a_difference() -> None:
    assert advantage("atoms(0.5,0.3,0.2)", 1) == pytest.approx(1.0 - 0.38, rel=1e-12)
    assert advantage("zipf(3)", 1) == pytest.approx(
        1.0 - float(mpmath.zeta(6) / mpmath.zeta(3) ** 2), rel=1e-12
    )


def test_a_constant_record_reveals_nothing() -> None:
    for odds in ODDS:
        assert ask("membership-advantage", law="uniform(1)", records=7, odds=odds).upper <= 1e-279
        assert ask("membership-record-risk", atom_probability=1.0, records=7, odds=odds).upper <= 1e-279


def test_unique_records_reveal_everything() -> None:
    assert advantage("uniform(1000000000000)", 1000) == pytest.approx(1.0, abs=2e-9)
    low, high = worst_advantage(law("mixed(0.999999,uniform(1))"), 10**12, 1.0)
    assert (low, high) == pytest.approx((0.999999, 0.999999), abs=1e-9)


@pytest.mark.parametrize("odds", ODDS)
@pytest.mark.parametrize(
    "text", ["uniform(2)", "atoms(0.6,0.3,0.1)", "geometric(0.7)", "mixed(0.1,zipf(1.5))"]
)
def test_more_records_never_reveal_more(text: str, odds: float) -> None:
    found = [worst_advantage(law(text), n, odds) for n in (*range(1, 40), 100, 10**4, 10**8)]
    for more, fewer in itertools.pairwise(reversed(found)):
        assert more[0] <= fewer[1]
    assert found[-1][0] <= 0.1 + 0.01 * found[0][1]


def test_two_and_three_records_of_a_fair_bit_reveal_the_same() -> None:
    assert advantage("uniform(2)", 2) == pytest.approx(0.25, rel=1e-12)
    assert advantage("uniform(2)", 3) == pytest.approx(0.25, rel=1e-12)
    answer = ask("membership-records", "membership.planning", law="uniform(2)", target_advantage=0.25)
    assert (answer.lower, answer.upper) == (2.0, 4.0), "a plateau at the target leaves both ends open"


@pytest.mark.parametrize("odds", ODDS)
def test_merged_values_never_reveal_more(odds: float) -> None:
    rng = np.random.default_rng(6)
    for _ in range(20):
        weights = rng.dirichlet(np.full(6, 0.7)).tolist()
        merged = [weights[0] + weights[1], *weights[2:]]
        for n in (1, 5, 200):
            coarse = worst_advantage(law(written(merged)), n, odds)
            assert coarse[0] <= worst_advantage(law(written(weights)), n, odds)[1]
        assert diversity(law(written(merged)))[0] <= diversity(law(written(weights)))[1]


def test_odds_further_from_1_never_reveal_more() -> None:
    for text in ("uniform(10)", "zipf(1.5)", "bernoulli(0.01)"):
        for side in ((1.0, 1.01, 1.3, 2.0, 10.0, 1e6), (1.0, 0.99, 0.7, 0.5, 0.1, 1e-6)):
            found = [worst_advantage(law(text), 100, odds) for odds in side]
            for nearer, further in itertools.pairwise(found):
                assert further[0] <= nearer[1]


def test_both_sides_of_the_odds_differ() -> None:
    assert advantage("uniform(10)", 100, 0.8) == pytest.approx(0.05182801, abs=5e-9)
    assert advantage("uniform(10)", 100, 1.25) == pytest.approx(0.03738873, abs=5e-9)


def test_security_and_accuracy_are_the_advantage_in_other_words() -> None:
    fields: dict[str, Any] = {"law": "atoms(0.5,0.3,0.2)", "records": 20}
    found = ask("membership-advantage", **fields, odds=1.5)
    security = ask("membership-security", **fields, odds=1.5)
    assert security.lower <= 1.0 - found.upper <= 1.0 - found.lower <= security.upper
    accuracy = ask("membership-accuracy", **fields, nonmember_share=0.6, member_weight=1.0)
    assert accuracy.lower == pytest.approx(0.6 + 0.4 * found.lower, rel=1e-12)
    blind = ask("membership-accuracy", **fields, nonmember_share=0.999, member_weight=1.0)
    assert blind.lower == pytest.approx(0.999, rel=1e-12), "guessing is best where nearly all are fresh"
