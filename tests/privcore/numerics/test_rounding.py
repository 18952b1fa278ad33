"""Every outward slack against ball arithmetic, over its domain, and in one place only."""

import ast
import math
import random
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import acb, arb, ctx
from scipy import special
from scipy.stats import binom

from privcore.allocation.problems import AllocationError, PoissonError
from privcore.allocation.published.decomposition import decomposition
from privcore.allocation.published.truncated import _rest
from privcore.allocation.sums import log_exceedances
from privcore.allocation.utility import squared_error
from privcore.auditing.ceiling import Attaining, _largest
from privcore.auditing.expected import simplex_success, success_cap
from privcore.auditing.optimal import few_error_masses
from privcore.auditing.problems import AuditGaussianTail, AuditTail
from privcore.auditing.programme import _profile, proved_bound, solve
from privcore.auditing.recursion import (
    APPROXIMATE,
    GAUSSIAN,
    LAPLACE,
    NO_LINES,
    largest_refuted,
    smallest_level,
)
from privcore.distributions.record_infinite import hurwitz
from privcore.labels.bounds.root import bernstein_bound, chernoff_bound
from privcore.labels.bounds.tails import largest_probability
from privcore.membership.data.mcdiarmid import mean_distance
from privcore.membership.discrete import excess
from privcore.membership.discrete.deviation import largest_constant, least_constant
from privcore.membership.discrete.diversity import LARGEST, LEAST
from privcore.membership.experiments.noise import noise_share
from privcore.membership.gaussian_mean.gamma_ratio import mean_norm
from privcore.membership.learner.channel import channel_advantage
from privcore.membership.learner.information import information_bound
from privcore.membership.learner.majority import agreement_advantage, majority_bias
from privcore.membership.learner.overfitting import theorem11
from privcore.membership.learner.sharp import (
    add_remove_advantage,
    published_bound,
    substitution_advantage,
    with_delta,
)
from privcore.membership.regression.likelihood_ratio import RegressionDraws, log_ratio
from privcore.membership.regression.threshold import _erf_between
from privcore.numerics import rounding
from privcore.numerics.binomial import window
from privcore.numerics.gaussian import gaussian_rate_bounds, log_gaussian_delta
from tests.privcore.numerics import balls
from tests.privcore.numerics.balls import above, below, moved, near, spread

pytestmark = pytest.mark.sampled(16)

U = rounding.UNIT
UNNAMED = 8
"""Number of factors such as 1 + 1e-12 inside of functions; lower it when a factor moves to rounding.py.

Four are not slacks: the end of the search of a noise multiplier, the start of that of a level, the distance
of edges of cells that nearly coincide, and the clip of inner edges. Four are slacks that are neither counted
nor checked: those of the privacy profile in `auditing.programme`, of the threshold at which a quantile is
tested in `labels.sampling`, and of both ends in `utility.simulation`.
"""


@pytest.fixture(autouse=True)
def _bits() -> Iterator[None]:
    with ctx.workprec(balls.PRECISION):
        yield


@pytest.fixture(params=[1, pytest.param(40, marks=pytest.mark.soak)])
def often(request: pytest.FixtureRequest) -> int:
    """Return the factor by which the number of points is multiplied."""
    return int(request.param)


# ------------------------------------------------------------------------------------ functions


def test_gammaln_of_whole_numbers_errs_by_four_units() -> None:
    for n in range(3, 1026):  # of 1 and 2 it is 0
        assert near(float(special.gammaln(float(n))), arb(n).lgamma(), 4.0 * U * math.lgamma(n)), n


def test_the_error_function_stays_within_its_slack(often: int) -> None:
    for level, deviation in spread(1, 1000 * often, (2.3e-308, 1e12), (1e-6, 1e6)):
        truth = ((arb(level) / 2).sqrt() / arb(deviation)).erf()
        assert moved(noise_share(level, deviation), rounding.ERROR_FUNCTION, truth), (level, deviation)
    assert noise_share(0.0, 1.0) == 0.0


def log_profile(sigma: float, epsilon: float) -> arb:
    """Return the logarithm of the Gaussian profile, by Mills ratios."""

    def truth() -> arb:
        s = arb(sigma)
        a = arb(epsilon) * s - 1 / (2 * s)
        return balls.mills(a) - balls.mills(a + 1 / s)

    difference = balls.sharpened(truth)
    a = arb(epsilon) * arb(sigma) - 1 / (2 * arb(sigma))
    return difference.log() - a * a / 2 - (2 * arb.pi()).log() / 2


def test_the_gaussian_profile_stays_within_its_slacks(often: int) -> None:
    sigmas, epsilons = (1e-8, 1e-3, 0.99, 1.0, 1.01, 30.0, 1e6, 1e14), (1e-12, 1e-3, 1.0, 50.0, 1e4)
    grid = [(s, side * e) for s in sigmas for e in (0.0, *epsilons) for side in (1.0, -0.01)]
    drawn = list(spread(2, 250 * often, (1e-8, 1e14), (1e-9, 1e4)))
    # arguments at which delta is neither 1 nor 0
    bulk = [(s, (a - 20.0 + 0.5 / s) / s) for s, a in spread(3, 250 * often, (1e-3, 1e6), (12.0, 60.0))]
    for sigma, epsilon in (*grid, *drawn, *bulk):
        if not -100.0 <= epsilon <= 1e4:
            continue
        truth = log_profile(sigma, epsilon)
        for side, encloses in ((-1.0, below), (1.0, above)):
            found = log_gaussian_delta(sigma * (1.0 - side * rounding.GAUSSIAN_SIGMA), epsilon)
            found += side * rounding.GAUSSIAN_LOG_DELTA * max(1.0, -found)
            assert encloses(found, truth), (sigma, epsilon, side)


@pytest.mark.sampled(1)
def test_logarithms_of_exceedances_stay_within_their_slack(often: int) -> None:
    rng = random.Random(4)
    for _ in range(150 * often):
        mean = math.exp(rng.uniform(math.log(1e-6), math.log(2000.0)))
        cut = rng.choice((rng.uniform(-40.0, 40.0), mean + rng.uniform(-40.0, 40.0)))
        outputs = ((rng.choice((1, 3, 10**9, 10**15)), mean), (rng.choice((1, 1000, 10**15)), 0.0))

        def truth(cut: float = cut, outputs: tuple[tuple[int, float], ...] = outputs) -> arb:
            less = [arb(cut) - arb(mu) for _, mu in outputs]
            logs = [(-balls.normal(-x)).log1p() if x > 0 else balls.normal(x).log() for x in less]
            return -sum((n * log for (n, _), log in zip(outputs, logs, strict=True)), arb(0))

        exact = balls.sharpened(truth).log()
        low, high = (float(log_exceedances(np.array([cut]), outputs, side)[0]) for side in (-1, 1))
        assert high - low >= rounding.LOG_EXCEEDANCE
        assert below(low, exact), (cut, outputs)
        assert above(high, exact), (cut, outputs)


def test_the_zeta_function_errs_by_no_more_than_its_docstring_says(often: int) -> None:
    for s, a in spread(5, 400 * often, (1.0 + 2.0**-20, 1000.0), (1.0, 1e18)):
        base = float(math.floor(a))
        if base**-s > 1e-300:
            found, truth = float(hurwitz(s, np.array([base]))[0]), arb(s).zeta(arb(base))
            assert near(found, truth, 2e-15 * found), (s, base)


def test_the_logistic_function_stays_within_its_slack(often: int) -> None:
    for (epsilon,) in spread(6, 1000 * often, (2.3e-308, 700.0)):
        kept = 1 / (1 + arb(-epsilon).exp())
        for found, truth in (
            (special.expit(epsilon), kept),
            (special.expit(-epsilon), kept * arb(-epsilon).exp()),
        ):
            assert near(float(found), truth, rounding.RESPONSE * float(found)), epsilon


def test_differences_of_normal_quantiles_stay_within_their_slack(often: int) -> None:
    rates = [math.exp(-x) for x in (1e-16, 1e-9, 0.1, 0.69, 3.0, 40.0, 690.0)] + [0.5]
    pairs = [(a, b) for a in rates for b in rates if a < 1.0 and b < 1.0]
    pairs += [(1.0 - a, b) for a, b in spread(32, 200 * often, (2.0**-53, 0.5), (1e-300, 0.5))]
    pairs += [(a, min(a * (1.0 + b), 0.9)) for a, b in spread(33, 200 * often, (1e-300, 0.5), (1e-16, 0.5))]
    for a, b in (*pairs, *((b, a) for a, b in pairs)):
        found = float(special.ndtri(a) - special.ndtri(b))
        if found > 0.0:
            safe = found * (1.0 - rounding.NORMAL_QUANTILES) - rounding.NORMAL_QUANTILES
            assert below(safe, balls.quantile(arb(a)) - balls.quantile(arb(b))), (a, b)


def test_rates_of_the_gaussian_trade_off_stay_within_their_slack(often: int) -> None:
    rates = [1e-300, 1e-30, 1e-3, 0.5, 1.0 - 1e-9, 1.0 - 2.0**-53]
    grid = [(r, side * m) for r in rates for m in (0.0, 1e-9, 0.1, 3.0, 20.0, 60.0) for side in (-1.0, 1.0)]
    drawn = list(spread(35, 300 * often, (1e-300, 0.999), (1e-6, 50.0)))
    for rate, shift in (*grid, *drawn, *((rate, -shift) for rate, shift in drawn)):
        low, high = gaussian_rate_bounds(rate, shift)
        truth = balls.normal(balls.quantile(arb(rate)) + arb(shift))
        assert 0.0 <= low < high <= 1.0
        assert low == 0.0 or below(low, truth), (rate, shift)
        assert high == 1.0 or above(high, truth), (rate, shift)
        assert high < 1.1e-300 or rounding.GAUSSIAN_RATE <= (high - low) / high <= 1e-8 or high == 1.0


def test_rests_of_the_exponential_series_stay_within_their_slack(often: int) -> None:
    for theta, size in spread(34, 1000 * often, (1e-6, 1e6), (1e-9, 600.0)):
        for y in (-size, size, math.copysign(1e-3, theta - 1.0)):
            edge = 1.0 - y / theta
            at = arb(theta) * (1 - arb(edge))
            if edge >= 0.0 and edge != 1.0:
                found = float(_rest(theta, np.array([edge]))[0])

                def rest(at: arb = at) -> arb:
                    return at.expm1() - at

                truth = balls.sharpened(rest)
                assert above(found, truth), (theta, edge)
                above_it = 3.0 * rounding.EXPONENTIAL_REST if abs(at) > 2e-3 else 1e-7  # a polynomial
                assert found <= float(truth) * (1.0 + above_it), (theta, edge)


# ------------------------------------------------------------------------------------- binomial


def counts(seed: int, number: int, most: float, least_mean: float = 0.0) -> Iterator[tuple[int, float, int]]:
    """Yield trials, probabilities and counts, up to 36 deviations from the mean."""
    rng = random.Random(seed)
    while number:
        n = math.floor(math.exp(rng.uniform(0.0, math.log(most))))
        p = rng.choice(
            (
                rng.random(),
                math.exp(rng.uniform(-35.0, -1e-9)),
                min(1.0, math.exp(rng.uniform(-5.0, 8.0)) / n),
            )
        )
        deviation = math.sqrt(n * p * (1.0 - p))
        k = math.floor(
            n * p + rng.choice((3.0, 36.0)) * rng.uniform(-1.0, 1.0) * deviation + rng.uniform(-2.0, 2.0)
        )
        if 0 <= k < n and 0.0 < p < 1.0 and deviation**2 >= least_mean:
            number -= 1
            yield n, p, k


def test_windows_of_binomial_probabilities_stay_within_their_slack(often: int) -> None:
    rng = random.Random(7)
    # for these, the rounded p / (1 - p) errs most; the worst of the others
    cases = [(n, p) for n in (1, 10, 10**4, 10**6) for p in (1e-9, 0.3, 0.5, 0.6224593312018546, 0.999)]
    for n, p in [*cases, *((10**9, p) for p in (0.5, 0.6224593312018546, 0.3)[: 1 if often == 1 else 3])]:
        law = window(n, p)
        slack = rounding.BINOMIAL_WINDOW * (1.0 if p >= 0.5 else 1.5)
        for place in {0, law.law.size - 1, *(rng.randrange(law.law.size) for _ in range(20 * often))}:
            found = float(law.law[place])
            if found > 1e-290:
                assert near(found, balls.binomial(n, arb(p), law.first + place), slack * found), (n, p, place)


def test_terms_and_tails_of_binomial_counts_stay_within_their_slack(often: int) -> None:
    for n, p, k in counts(8, 150 * often, 1e12):
        q = np.array([float(1 - arb(p))])
        found = float(excess.modes(float(n), np.array([p]), q, np.array([float(k)]))[0])
        slack = rounding.BINOMIAL_TERM + 8.0 * U * abs(k - n * p)
        if found > 1e-300:
            assert near(found, balls.binomial(n, arb(p), k), slack * found), (n, p, k)
    for n, p, k in counts(9, 60 * often, 1e12, least_mean=490.0):
        q = np.array([float(1 - arb(p))])
        slack = rounding.BINOMIAL_TERM + float(excess._tail_error(n, np.array(p), q, np.array(float(k)))[0])
        for upper, truth in ((True, balls.more_than(n, arb(p), k)), (False, balls.at_most(n, arb(p), k))):
            found = float(excess._tail(n, np.array([p]), np.array([float(k)]), q, upper)[0])
            if found > 1e-300:
                assert near(found, truth, slack * found), (n, p, k, upper)


def test_both_ends_of_tails_enclose_them_for_all_means(often: int) -> None:
    for n, p, k in counts(29, 250 * often, 1e12):
        truth = balls.more_than(n, arb(p), k)
        q, count = np.array([float(1 - arb(p))]), np.array([k + 1.0])
        low, high = (float(end[0]) for end in excess.at_least(n, np.array([p]), q, count))
        if low > 1e-290:
            assert below(low, truth), (n, p, k)
            assert high == 1.0 or above(high, truth), (n, p, k)


def test_counts_of_clones_stay_within_their_slack(often: int) -> None:
    rng, half = random.Random(10), arb(0.5)
    for _ in range(60 * often):
        n = math.floor(10.0 ** rng.uniform(0.0, 9.0))
        far = rng.choice((rng.uniform(-3.0, 37.0) * 0.5 * math.sqrt(n), rng.uniform(0.0, 0.5) * n))
        k = min(n - 1, max(0, math.floor(0.5 * n + far)))
        one, tail = float(binom.pmf(float(k), float(n), 0.5)), float(binom.sf(float(k), float(n), 0.5))
        if one > 1e-300:
            assert near(one, balls.binomial(n, half, k), rounding.CLONE_COUNTS * one), (n, k)
        if tail > 1e-300:
            assert near(tail, balls.more_than(n, half, k), rounding.CLONE_COUNTS * tail), (n, k)
    for n, g, k in counts(11, 80 * often, 1e9):
        fewer = float(binom.cdf(float(k), float(n), g))
        if fewer > 1e-300:
            slack = rounding.CLONE_COUNTS + n * 2.0**-51
            assert near(fewer, balls.at_most(n, arb(g), k), slack * fewer), (n, g, k)


def test_the_incomplete_beta_function_stays_within_its_slack(often: int) -> None:
    for n, p, k in counts(12, 100 * often, 1e9):
        found = float(special.betaincc(k + 1.0, float(n - k), p))
        assert near(found, balls.at_most(n, arb(p), k), rounding.INCOMPLETE_BETA), (n, p, k)


def test_agreements_with_a_majority_stay_below_their_true_advantage(often: int) -> None:
    for b, n in spread(13, 40 * often, (2.0, 1e12), (2.0, 1e12)):
        bits, records = math.floor(b), math.floor(n)
        half = arb(records // 2)
        truth = (
            arb(0.5) * (half + arb(0.5)).gamma() / half.gamma() / half / arb.pi().sqrt()
            if half < 1e5
            else (arb(0.5) * ((half + arb(0.5)).lgamma() - half.lgamma()).exp() / half / arb.pi().sqrt())
        )
        lower, count = agreement_advantage(bits, majority_bias(records))
        member = balls.more_than(bits, arb(0.5) + truth, count - 1)
        gain = member - balls.more_than(bits, arb(0.5), count - 1)
        assert below(lower, gain), (bits, records)
        margin = 3.0 * rounding.MAJORITY_TAILS + 2e-16 * math.sqrt(bits)
        assert near(lower, gain, margin), (bits, records)


# ------------------------------------------------------------------------------------- formulas


def test_shares_of_one_record_stay_within_few_operations(often: int) -> None:
    for unfitted, fresh, odds in spread(14, 1000 * often, (2.3e-308, 1.0), (2.3e-308, 1.0), (1e-6, 1e6)):
        for u, f in ((unfitted, fresh), (0.0, fresh), (unfitted, 0.0), (1.0 - unfitted, 1.0 - fresh)):
            g = arb(odds)
            truth = (1 / g).max(arb(1)) * (arb(u) + g * arb(f))
            assert moved(theorem11(u, f, odds), rounding.FEW_OPERATIONS, truth), (u, f, odds)


def test_an_accuracy_stays_within_few_operations(often: int) -> None:
    for share, weight, gain in spread(15, 1000 * often, (2.3e-308, 1.0 - U), (1e-3, 1e3), (1e-12, 1.0)):
        member = weight * (1.0 - share)
        exact = arb(weight) * (1 - arb(share))
        found = max(share, member) + min(share, member) * gain
        truth = arb(share).max(exact) + arb(share).min(exact) * arb(gain)
        assert moved(found, rounding.FEW_OPERATIONS - 2.0 * U, truth), (share, weight)


def sharp(epsilon: arb, odds: arb, substitution: bool) -> arb:
    """Return the largest advantage under differential privacy, from the formulas of its proof."""
    e, g = epsilon.exp(), odds.max(1 / odds)
    if not (epsilon if substitution else 2 * epsilon) > g.log():
        return arb(0)
    if substitution:
        return (e.sqrt() - g.sqrt()) ** 2 / (e - 1)
    if g <= ((e + 1) / 2 if odds >= 1 else 2 * e / (e + 1)):
        return (e - g) / (e + 1)
    if odds >= 1:
        return ((odds * (e**2 - 1)).sqrt() - e * (odds - 1).sqrt()) ** 2 / (e + 1)
    return ((e**2 - 1).sqrt() - (g - 1).sqrt()) ** 2 / (e * (e + 1))


def private(seed: int, number: int) -> Iterator[tuple[float, float]]:
    """Yield epsilon and odds, many of them near the start of the advantage or a change of the formula."""
    rng = random.Random(seed)
    for epsilon, odds in spread(seed, number, (2.3e-308, 700.0), (1e-6, 1e6)):
        yield epsilon, odds
        near_one = math.exp(math.log(odds) * 10.0 ** rng.uniform(-15.0, 0.0))
        for factor in (0.5, 1.0, 2.0):
            at = abs(math.log(near_one)) * factor
            for move in (-1e-9, -4.0 * U, 0.0, 2.0 * U, 4.0 * U, 1e-12, 1e-6):
                if 0.0 < at * (1.0 + move) <= 700.0:
                    yield at * (1.0 + move), near_one


def test_the_advantage_under_privacy_stays_within_its_slacks(often: int) -> None:
    slack = rounding.PRIVATE_ADVANTAGE
    for epsilon, odds in private(16, 60 * often):
        low, high = (epsilon * (1.0 + side * rounding.MOVED_EPSILON) for side in (-1.0, 1.0))
        for function, substitution in ((substitution_advantage, True), (add_remove_advantage, False)):
            with ctx.workprec(3000):
                truth = sharp(arb(epsilon), arb(odds), substitution)
            for delta in (0.0, 1e-9, 0.3):
                at = with_delta(function(low, odds), delta), with_delta(function(high, odds), delta)
                exact = arb(delta) + (1 - arb(delta)) * truth
                assert below(at[0] * (1.0 - slack), exact), (epsilon, odds, delta, substitution)
                assert above(at[1] * (1.0 + slack), exact), (epsilon, odds, delta, substitution)
                if substitution:
                    published = published_bound(epsilon, delta, odds)
                    assert above(published * (1.0 + slack) + 1e-16, exact), (epsilon, odds, delta)


def test_closed_forms_about_learners_stay_within_their_slack(often: int) -> None:
    for information, norm, records in spread(17, 300 * often, (2.3e-308, 1e6), (1.0, 1e6), (2.0, 1e12)):
        i, d, n = arb(information), math.floor(norm), math.floor(records)
        bound = (i / 2).sqrt().min((-(-i).expm1()).sqrt())
        assert moved(information_bound(information), rounding.CLOSED_FORM, bound), information
        mean = arb(2).sqrt() * ((arb(d + 1) / 2).lgamma() - (arb(d) / 2).lgamma()).exp()
        found = 0.5 * math.sqrt(d) / n + 0.5 * mean_norm(d) / math.sqrt(n)
        truth = arb(d).sqrt() / (2 * arb(n)) + mean / (2 * arb(n).sqrt())
        assert moved(found, rounding.CLOSED_FORM, truth), (d, n)
        least = ((arb(n) - arb(0.5)) * (-1 / arb(n)).log1p()).exp()
        assert moved(least_constant(n), rounding.CLOSED_FORM / 4.0, least), n
        most = ((arb(n) - arb(0.5)) * (-1 / arb(2 * n)).log1p()).exp() / arb(2).sqrt()
        assert moved(largest_constant(n), rounding.CLOSED_FORM / 4.0, most), n
    root = (2 * arb.pi()).sqrt()
    assert below(LEAST, (arb(3) / 2 * arb(2).log() - arb(4) / 3).exp() / root)
    logs = 7 * arb(7).log() / 2 - 2 * arb(3).log() - 13 * arb(2).log() / 2
    assert above(LARGEST, (logs - arb(1) / 36).exp() / root)


def test_a_channel_never_reveals_more_than_its_information(often: int) -> None:
    for information, size in spread(18, 60 * often, (1e-280, 40.0), (2.0, 2.0**49)):
        k = math.floor(size)
        lower = channel_advantage(information, k)
        with ctx.workprec(2500):
            t = arb(lower) / (1 - 1 / arb(k))  # the probability that attains it
            other = (1 - t) * (1 - 1 / arb(k))
            used = arb(k).log() + (1 - other) * (1 - other).log() + other * (other / (k - 1)).log()
        assert used <= arb(information), (information, k)


def test_the_decomposition_stays_within_a_short_formula(often: int) -> None:
    for rate, steps in spread(19, 100 * often, (1e-9, 0.99), (1.0, 1e9)):
        part, t = (
            decomposition(1.0 / math.floor(steps) if rate > 0.1 else rate, math.floor(steps)),
            math.floor(steps),
        )
        exact = (
            t * (-(arb(1.0 / t) if rate > 0.1 else arb(rate))).log1p()
            if part.log_absence > -math.inf
            else None
        )
        if exact is None:
            continue
        p = -exact.expm1()
        assert near(part.presence, p, rounding.SHORT_FORMULA / 4.0 * part.presence), (rate, t)
        for x in (-700.0, -30.0, -1.0, -1e-9, 1e-12, 0.1, 1.0, 29.9, 30.1, 700.0):
            if x > 30.0 and part.presence < 1e-9:
                continue
            truth = (exact.exp() + p * arb(x).exp()).log() if abs(x) > 1.0 else (p * arb(x).expm1()).log1p()
            found = part._mixed(x)
            assert near(found, truth, 2.0 * rounding.SHORT_FORMULA * abs(found)), (rate, t, x)


def test_the_error_of_a_mean_stays_within_a_short_formula(often: int) -> None:
    ranges = (2.3e-308, 1.0), (1.0, 1e9), (1.0, 1e15), (1.0, 1e9), (1e-6, 1e15)
    for p, t, n, d, sigma in spread(20, 300 * often, *ranges):
        steps, examples, dimension = math.floor(t), math.floor(n), math.floor(d)
        for kind in (AllocationError, PoissonError):
            asked = kind(
                epsilon=1.0, delta=1e-9, steps=steps, examples=examples, dimension=dimension, proportion=p
            )
            drawn = arb(p) * (1 - arb(p)) / examples
            if kind is PoissonError:
                drawn += arb(p) * (1 - 1 / arb(steps)) / examples
            truth = drawn + arb(steps) * dimension * (arb(sigma) / examples) ** 2
            slack = rounding.SHORT_FORMULA
            found = squared_error(asked, sigma)
            assert below(found * (1.0 - slack) - rounding.SUBNORMAL, truth), (asked, sigma)
            assert above(found * (1.0 + slack) + rounding.SUBNORMAL, truth), (asked, sigma)


def test_bounds_on_label_inference_stay_within_their_slack(often: int) -> None:
    for rare, size in spread(21, 300 * often, (1e-12, 0.5), (1.0, 1e6)):
        for p in (rare, 0.5 - rare * (1.0 - rare), 1.0 - rare):
            k, x = math.floor(size), arb(p)
            gap = arb(0.5) - x.min(1 - x)
            bernstein = (-k * gap**2 / (2 * x * (1 - x) + 2 * gap / 3)).exp()
            for found, truth in (
                (bernstein_bound(p, k), bernstein),
                (chernoff_bound(p, k), (4 * x * (1 - x)) ** (arb(k) / 2)),
            ):
                if found > 1e-300:
                    assert moved(found, rounding.LABEL_BOUND, truth), (p, k)
            variance = k * p * (1.0 - p)
            mode = (-arb(variance)).exp() * arb(variance).bessel_i(arb(0))
            assert moved(float(largest_probability(variance)), rounding.LABEL_BOUND / 10.0, mode), variance


def test_the_likelihood_ratio_of_least_squares_stays_within_its_slack(often: int) -> None:
    rng = random.Random(22)
    for _ in range(40 * often):
        n = math.floor(math.exp(rng.uniform(math.log(2.0), math.log(1e5))))
        d = rng.choice((1, n - 1, rng.randint(1, n - 1), max(1, n - rng.randint(1, 90))))
        x2, s = 2.0 * rng.gammavariate(0.5 * d, 1.0), rng.gauss(0.0, 1.0) / math.sqrt(n - d)
        r, b2 = rng.gauss(0.0, 1.5), rng.random() * d / (n - d)
        found = float(log_ratio(RegressionDraws(*(np.array([v]) for v in (x2, s, r, b2))), n, d)[0])

        def truth(n: int = n, d: int = d, x2: float = x2, s: float = s, r: float = r, b2: float = b2) -> arb:
            a, q = arb(n - d - 1) / 2, arb(x2) + arb(s) ** 2
            root = (arb(r) ** 2 * q).sqrt()
            above_a = 2 * (root / 2) ** (a + 1) * root.bessel_k(a + 1) / (a + 1).gamma()
            at_a = (root / 2) ** a * root.bessel_k(a) / (a + 1).gamma()  # T / 2a
            constant = (
                (arb(n) / 2).gamma() * (a + 1).gamma() / ((arb(n + 1) / 2).gamma() * (a + arb(0.5)).gamma())
            )
            return constant * (1 + arb(b2)).sqrt() * (arb(r) * arb(s)).exp() * (above_a + q * at_a)

        assert near(found, balls.sharpened(truth).log(), rounding.BESSEL_RATIO), (n, d, x2, s, r, b2)


def distance(counts: list[int], n: int, odds: float) -> arb:
    """Return the mean distance of n records of a sample from the others, by all hypergeometric terms."""
    size, total = sum(counts), arb(0)
    g, rest = arb(odds), sum(counts) - n
    for k in set(counts):
        at = max(0, n - (size - k))
        term = (
            hypergeometric_log(k, at) + hypergeometric_log(size - k, n - at) - hypergeometric_log(size, n)
        ).exp()
        for h in range(at, min(k, n) + 1):
            apart = arb(h) / n - g * (k - h) / rest
            total += counts.count(k) * term * (apart if odds >= 1.0 else -apart / g).max(arb(0))
            term = term * (k - h) * (n - h) / ((h + 1) * (size - k - n + h + 1)) if h < min(k, n) else term
    return total


def hypergeometric_log(n: int, k: int) -> arb:
    return arb(n + 1).lgamma() - arb(k + 1).lgamma() - arb(n - k + 1).lgamma()


def test_distances_of_the_parts_of_a_sample_stay_within_their_slack(often: int) -> None:
    rng = random.Random(26)
    for _ in range(10 * often):
        counts = [math.floor(math.exp(rng.uniform(0.0, 6.0))) for _ in range(rng.choice((2, 3, 6)))]
        counts *= rng.choice((1, 1, 10, 10**3))
        n = min(sum(counts) - 1, math.floor(math.exp(rng.uniform(0.0, math.log(sum(counts))))))
        odds = rng.choice((1.0, 1.0, math.exp(rng.uniform(-3.0, 3.0))))
        if n >= 1:
            truth = distance(counts, n, odds)
            found = mean_distance(np.array(counts), n, odds)
            assert above(found * (1.0 + rounding.SPLIT_SAMPLE), truth), (counts, n, odds)
    for size, share, place in spread(27, 100 * often, (10.0, 1e9), (1e-6, 0.5), (0.01, 1.0)):
        n, p = math.floor(size), share
        k = math.floor(n * p + place * math.sqrt(n * p))
        found = float(binom.pmf(float(k), float(n), p))
        assert near(found, balls.binomial(n, arb(p), k), rounding.SPLIT_SAMPLE / 4.0 * found), (n, p, k)


def test_rates_of_losses_stay_within_their_slack(often: int) -> None:
    for root, size in spread(28, 200 * often, (1e-6, 60.0), (1e-12, 60.0)):
        for difference in (size, -min(size, root)):
            found = float(_erf_between(root, np.array([difference]))[0])
            half = arb(0.5).sqrt()
            truth = abs((arb(root) * half).erfc() - ((arb(root) + arb(difference)) * half).erfc())
            if found > 1e-250:
                slack = rounding.LOSS_RATES * max(1.0, (root / 20.0) ** 2)
                assert near(found, truth, slack * found), (root, difference)


# ------------------------------------------------------------------------------------- audits


def refutes(family: int, at: float, delta: float, counted: tuple[float, ...], tau: float) -> bool | None:
    """Return whether the counted correct guesses are unlikely, by Algorithm 3; None after very many steps."""
    with ctx.workprec(1024):  # a step loses about two bits
        return recursion(family, arb(at), arb(delta), [arb(x) for x in counted], arb(tau))


def trade_off(family: int, at: arb, delta: arb, y: arb) -> arb:
    """Return the least x with 1 - f(x) >= y."""
    e = at.exp()
    if family == GAUSSIAN:
        return balls.normal(balls.quantile(y) - at)
    if family == LAPLACE:
        x = 1 - y
        if x < 1 / (2 * e):
            return e * y - (e - 1)
        return 1 / (4 * e * x) if x <= arb(0.5) else y / e
    return arb(0).max((y - delta) / e).max(e * y - (e - 1) - delta)


def recursion(family: int, at: arb, delta: arb, counted: list[arb], tau: arb) -> bool | None:
    canaries, guesses, correct, alternatives = counted
    r, h = tau * correct / canaries, tau * (guesses - correct) / canaries
    i = correct - 1
    while i >= 0:
        following = (alternatives - 1) * trade_off(family, at, delta, r)
        if not following > h:
            return False if following <= h else None
        r += i / (guesses - i) * (following - h)
        h = following
        if r + h >= guesses / canaries:
            return True
        i -= 1
    return False


def test_what_an_audit_refutes_is_refuted_in_ball_arithmetic(often: int) -> None:
    rng, decided = random.Random(23), []
    for _ in range(20 * often):
        guesses = math.floor(10.0 ** rng.uniform(1.0, 9.0))
        canaries = min(10**9, math.floor(guesses * 10.0 ** rng.uniform(0.0, 2.0)))
        correct = guesses - math.floor(guesses * rng.uniform(0.0, 0.45) ** rng.choice((1, 3)))
        counted = (float(canaries), float(guesses), float(correct), float(rng.choice((2, 2, 10))))
        family, delta = rng.choice(((APPROXIMATE, 0.0), (APPROXIMATE, 1e-9), (GAUSSIAN, 0.0), (LAPLACE, 0.0)))
        found = largest_refuted(family, delta, counted, 0.05, 60.0)
        if 0.0 < found < 60.0:
            at = found * (1.0 - rounding.AUDIT_SEARCH)
            decided.append(refutes(family, at, delta, counted, 0.05))
            level = smallest_level((family, 0.5 * found, delta), NO_LINES, counted)
            if level > 1e-290:
                tau = level * (1.0 + rounding.AUDIT_SEARCH)
                decided.append(refutes(family, 0.5 * found, delta, counted, tau))
    assert False not in decided
    assert decided.count(True) > 10 * often


def test_responses_found_to_be_private_are_private(often: int) -> None:
    rng, checked = random.Random(29), 0
    for epsilon, share, more in spread(30, 150 * often, (1e-6, 30.0), (1e-6, 1.0), (1e-6, 30.0)):
        canaries = math.floor(10.0 ** rng.uniform(0.0, 9.0))
        attaining = Attaining(canaries, max(1, math.floor(share * canaries)), 1)
        delta = rng.choice((1e-300, 1e-9, 0.1))
        for claim in ((APPROXIMATE, epsilon, delta), (GAUSSIAN, epsilon, 0.0)):
            always = _largest(partial(attaining._private, claim, share=1.0), 0.0, 700.0)
            for log_odds in {always, min(always + more, 700.0)}:
                found = 1.0 if log_odds == always else attaining._share(claim, log_odds)
                if found > 0.0 and attaining._private(claim, log_odds, found):
                    whole = arb(found) * attaining.guesses / canaries
                    right, wrong = (whole / (1 + (side * arb(log_odds)).exp()) for side in (-1, 1))
                    truth = trade_off(claim[0], arb(epsilon), arb(claim[2]), right)
                    if wrong > 1e-300:  # smaller probabilities lose digits
                        checked += 1
                        assert truth <= wrong, (claim, log_odds, found, canaries)
    assert checked > 300 * often
    assert rounding.PRIVATE_RESPONSES == 1e-12


def test_bounds_of_a_programme_stay_within_their_slacks(often: int) -> None:
    rng, solved = random.Random(31), 0
    for _ in range(20 * often):
        guesses = rng.choice((rng.randint(1, 30), rng.randint(1, 100))) if solved else 500
        counted: dict[str, Any] = {"canaries": guesses * rng.choice((1, 10, 10**6)), "guesses": guesses}
        counted["correct"] = rng.randint(guesses // 2, guesses)
        level, delta = 10.0 ** rng.uniform(-9.0, 1.5), 10.0 ** rng.choice((-300.0, rng.uniform(-20.0, -1.0)))
        asked = rng.choice(
            (
                AuditTail(**counted, claimed_epsilon=level, delta=delta),
                AuditTail(**counted, claimed_epsilon=level, delta=delta, alternatives=10),
                AuditGaussianTail(**counted, mu=level),
            )
        )
        slopes, profile = _profile(asked, 10)
        solution = solve(asked, slopes, profile)
        if solution is None:
            continue
        weights = solution.multipliers
        solved += 1
        total = [arb(int(i >= asked.correct)) for i in range(guesses + 1)]
        paid = arb(0)
        for s, at, row in zip(slopes.tolist(), profile.tolist(), weights.tolist(), strict=True):
            e = arb(s).exp() / (asked.alternatives - 1)
            paid += arb(at) * max(row) * asked.canaries
            for i, w in enumerate(row, start=1):
                total[i] -= arb(w) * i
                total[i - 1] += arb(w) * e * (guesses - i + 1)
        found = proved_bound(asked, slopes, profile, weights)
        assert all(above(found, entry + paid) for entry in total), asked
        assert found >= float(paid) * (1.0 + 0.9 * rounding.PROGRAMME) + 0.9 * rounding.PROGRAMME_OFFSET
    assert solved > 10 * often


def test_binomial_probabilities_of_half_guesses_stay_within_their_slack(often: int) -> None:
    rng = random.Random(26)
    for trials in (1, 30, 5000):
        for _ in range(often):
            rate = 10.0 ** rng.uniform(-6.0, -0.302)
            masses = few_error_masses(trials, min(trials, 60), np.array([rate]))[0].tolist()
            wrong = arb(0)
            for count, mass in enumerate(masses):
                truth = arb.bin_uiui(trials, count) * arb(rate) ** count * (1 - arb(rate)) ** (trials - count)
                wrong += abs(truth - arb(mass))
            assert wrong <= 0.25 * rounding.HALF_GUESSES, (trials, rate)


def test_expected_guesses_stay_within_their_slack(often: int) -> None:
    rng = random.Random(24)
    for mu, canaries in spread(25, 30 * often, (1e-9, 30.0), (1.0, 1e9)):
        m, k = math.floor(canaries), rng.choice((2, 3, 10, 10**6))
        guesses = max(1, math.floor(m * rng.choice((1.0, rng.random(), 1e-6))))
        cap = arb(success_cap(mu, m, guesses, k)) * (1 + arb(rounding.EXPECTED_GUESSES))
        gamma = arb(guesses) / m
        if cap < 1:  # the root is at most the cap: there the left side is at least mu
            wrong = balls.quantile(gamma * (1 - cap) / (k - 1))
            assert gamma * cap >= balls.normal(arb(mu) + wrong), (mu, m, guesses, k)
    for mu in (1e-9, 0.1, 1.0, 5.0, 30.0):
        for k in (2, 3, 100, 10**6):

            def density(z: acb, analytic: bool, mu: float = mu, k: int = k) -> acb:
                inside = (-(z + acb(arb(mu) / arb(2).sqrt())) / acb(2).sqrt()).erfc() / 2
                return (-z * z / 2).exp() * inside ** (k - 1)

            panels = [(arb(a), arb(a + 2)) for a in range(-12, 12, 2)]
            with ctx.workprec(128):
                total = sum((acb.integral(density, acb(a), acb(b)).real for a, b in panels), arb(0))
            total = total / (2 * arb.pi()).sqrt() + arb(0, 1e-30)
            assert moved(simplex_success(mu, k), rounding.EXPECTED_GUESSES, total), (mu, k)


# ------------------------------------------------------------------------------------- one place


def constants(repository: Path) -> dict[str, str]:
    """Return the names of the slacks, with their reasons."""
    body = ast.parse((repository / "privcore/numerics/rounding.py").read_text()).body
    found = {}
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            reason = following.value if isinstance(following, ast.Expr) else None
            found[node.targets[0].id] = str(reason.value) if isinstance(reason, ast.Constant) else ""
    return found


@pytest.mark.sampled(1)
def test_no_slack_stands_elsewhere(repository: Path) -> None:
    for path in (repository / "privcore").rglob("*.py"):
        if path.name != "rounding.py":
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.Assign | ast.AnnAssign):
                    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                    names = [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]
                    literal = any(isinstance(part, ast.Constant) for part in ast.walk(node.value or target))
                    named = re.search("SLACK|OUTWARD|ROUNDING", " ".join(names))
                    assert not (named and literal), f"{path}:{node.lineno}: its place is rounding.py"


@pytest.mark.parametrize("size", [16, 256])
def test_a_fast_fourier_transform_errs_by_its_slack_at_most(size: int) -> None:
    rng = np.random.default_rng(size)
    terms = rng.random(size) ** 9
    found = np.fft.fft(terms.astype(complex))
    limit = rounding.FOURIER * math.log2(size) * float(terms.sum())
    with ctx.workprec(balls.PRECISION):
        for place in (0, 1, size // 3, size // 2):
            turns = (acb(arb(-2 * j * place) / size).exp_pi_i() for j in range(size))
            exact = sum((acb(float(term)) * turn for term, turn in zip(terms, turns, strict=True)), acb(0))
            assert abs(exact - acb(found[place].real, found[place].imag)) < limit


@pytest.mark.parametrize("variance", [0.0, 1e-9, 0.3, 1.0, 7.5, 30.0, 700.0, 1e4, 1e6])
def test_the_scaled_bessel_function_errs_by_its_slack_at_most(variance: float) -> None:
    found = float(special.ive(0, variance))
    with ctx.workprec(balls.PRECISION):
        truth = (-arb(variance)).exp() * acb(variance).bessel_i(0).real
        assert moved(found, rounding.SCALED_BESSEL, truth)


def test_factors_without_a_name_only_get_fewer(repository: Path) -> None:
    found = [
        f"{path.relative_to(repository)}:{node.lineno}"
        for path in (repository / "privcore").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)
        if isinstance(node.left, ast.Constant) and node.left.value == 1.0
        if isinstance(node.right, ast.Constant)
        and isinstance(node.right.value, float)
        and node.right.value < 1e-6
    ]
    assert len(found) <= UNNAMED, f"the place of a slack is rounding.py: {found}"


@pytest.mark.sampled(1)
def test_every_slack_has_a_reason_and_what_is_checked_is_checked_here(repository: Path) -> None:
    reasons = constants(repository)
    assert len(reasons) > 20
    here = Path(__file__).read_text()
    others = [path for path in (repository / "privcore").rglob("*.py") if path.name != "rounding.py"]
    product = "\n".join(path.read_text() for path in others)
    for name, reason in reasons.items():
        assert reason.startswith(("Counted: ", "Checked: ")), name
        assert re.search(rf"\b{name}\b", product), f"{name} is not used"
        if reason.startswith("Checked: ") or "Also checked." in reason:
            assert f"rounding.{name}" in here, name
