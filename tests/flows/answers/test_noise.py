"""The least noise: proved on both sides, as near as asked, in few brackets."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.answers.ask import Asked, UncoveredError, ask
from flows.answers.training.noise import Noise, find_noise, least_noise, sigma_of
from privcore import DomainError, LimitError, PrivsweepError, UnknownNameError, find_problem
from privcore.params import SIGMA

GAUSS = find_problem("unamplified-epsilon")
DOMAIN = (SIGMA.lower, SIGMA.upper)

Truth = Callable[[float], float]


def steep(sigma: float) -> float:
    """Epsilon as amplification makes it: it falls fast up to sigma of about 1, then like 1/sigma."""
    return 0.01 / sigma + 5.0 * math.exp(-3.0 * sigma) / sigma**2


TRUTHS: dict[str, Truth] = {
    "inverse": lambda sigma: 1.0 / sigma,
    "inverse square": lambda sigma: 0.5 / sigma**2,
    "steep": steep,
    "step": lambda sigma: 100.0 if sigma < 0.7 else 0.01,
    "zero beyond 5": lambda sigma: max(0.0, 1.0 / sigma - 0.2),
}


def brackets(truth: Truth, *, floor: float = 0.0, share: float = 0.5) -> Callable[[float, float], Asked]:
    """Bracket a known truth with the asked relative width but never less than `floor`."""

    def look(sigma: float, tolerance: float) -> Asked:
        width = max(tolerance, floor)
        lower, upper = truth(sigma) * (1.0 - share * width), truth(sigma) * (1.0 + (1.0 - share) * width)
        problem = GAUSS.from_fields({"sigma": sigma, "delta": 1e-5})
        return Asked(problem=problem, replies=(), lower=max(0.0, lower), upper=upper)

    return look


def searched(look: Callable[[float, float], Asked], target: float, precision: float = 1e-3) -> Noise:
    return least_noise(look, target, precision, DOMAIN)


@given(
    name=st.sampled_from(sorted(TRUTHS)),
    target=st.floats(-4.0, 2.0).map(lambda x: 10.0**x),
    precision=st.sampled_from([0.1, 1e-2, 1e-3]),
    share=st.floats(0.0, 1.0),
)
def test_the_search_ends_with_the_truth_between_its_two_sides(
    name: str, target: float, precision: float, share: float
) -> None:
    truth = TRUTHS[name]
    try:
        noise = searched(brackets(truth, share=share), target, precision)
    except UncoveredError:
        assert truth(DOMAIN[1]) * 1.2 > target
        return
    assert truth(noise.sigma) <= target
    assert noise.short is None or truth(sigma_of(noise.short)) > target
    if noise.short is None:
        assert truth(DOMAIN[0]) <= target * 1.0002  # closer than the brackets can separate
    else:
        assert noise.gap <= precision * 1.0001
    assert noise.brackets <= 40


@given(target=st.floats(-3.0, 1.5).map(lambda x: 10.0**x), floor=st.sampled_from([0.02, 0.2, 1.0]))
def test_brackets_that_stay_wide_end_the_search_at_their_width(target: float, floor: float) -> None:
    noise = searched(brackets(steep, floor=floor), target)
    assert steep(noise.sigma) <= target
    assert noise.short is not None
    assert steep(sigma_of(noise.short)) > target
    assert noise.gap <= (1.0 + floor) / (1.0 - 0.5 * floor) - 1.0 + 2e-3


def test_most_brackets_of_a_search_are_cheap() -> None:
    asked: list[float] = []
    look = brackets(steep)

    def counted(sigma: float, tolerance: float) -> Asked:
        asked.append(tolerance)
        return look(sigma, tolerance)

    searched(counted, 0.3, 1e-3)
    assert len(asked) <= 12
    assert sum(tolerance < 0.005 for tolerance in asked) <= 3


def test_without_lower_bounds_the_search_ends_with_one_side() -> None:
    def upper_only(sigma: float, tolerance: float) -> Asked:
        problem = GAUSS.from_fields({"sigma": sigma, "delta": 1e-5})
        return Asked(problem=problem, replies=(), upper=steep(sigma) * 1.01)

    noise = searched(upper_only, 0.3)
    assert noise.short is None
    assert steep(noise.sigma) * 1.01 <= 0.3
    assert steep(noise.sigma / 1.002) * 1.01 > 0.3
    assert noise.brackets <= 30


def test_what_fails_below_some_noise_does_not_stop_the_search() -> None:
    look = brackets(steep)

    def wall(sigma: float, tolerance: float) -> Asked:
        if sigma < 0.6:
            problem = GAUSS.from_fields({"sigma": sigma, "delta": 1e-5})
            return Asked(problem=problem, replies=(), status="failed", detail="It broke.")
        return look(sigma, tolerance)

    noise = searched(wall, 0.3)
    assert noise.short is not None
    assert noise.gap <= 1e-3


def test_contradicting_brackets_are_told_and_not_searched() -> None:
    def conflict(sigma: float, tolerance: float) -> Asked:
        problem = GAUSS.from_fields({"sigma": sigma, "delta": 1e-5})
        return Asked(problem=problem, replies=(), status="conflict", detail="Methods contradict one another.")

    with pytest.raises(PrivsweepError, match="contradict"):
        searched(conflict, 1.0)


def test_a_bound_that_grows_with_the_noise_is_noticed() -> None:
    growing = brackets(lambda sigma: 0.1 if sigma < 1.0 else 10.0)
    with pytest.raises(PrivsweepError):
        searched(growing, 1.0)


def test_a_claim_on_the_wrong_side_cannot_be_made() -> None:
    asked = ask(GAUSS.from_fields({"sigma": 1, "delta": 1e-5}))
    with pytest.raises(PrivsweepError, match="wrong side"):
        Noise(target=1.0, enough=asked, short=None, brackets=1)
    with pytest.raises(PrivsweepError, match="too early"):
        Noise(target=5.0, enough=asked, short=asked, brackets=1)


@pytest.mark.parametrize("target", [1e-3, 0.1, 1.0, 8.0, 1000.0])
@pytest.mark.parametrize("precision", [1e-2, 1e-3, 1e-6, 1e-9])
def test_gaussian_noise_is_found_at_any_precision(target: float, precision: float) -> None:
    noise = find_noise(GAUSS, {"delta": 1e-6}, target, precision=precision)
    assert noise.short is not None
    assert noise.gap <= precision
    assert noise.brackets <= 16
    for sigma, holds in ((noise.sigma, True), (sigma_of(noise.short), False)):
        again = ask(GAUSS.from_fields({"sigma": sigma, "delta": 1e-6}))
        assert (again.upper <= target) is holds
        assert (again.lower > target) is not holds


def test_the_found_noise_has_few_digits() -> None:
    noise = find_noise(GAUSS, {"delta": 1e-5}, 1.0)
    assert len(repr(noise.sigma).replace(".", "")) <= 5


def test_random_allocation_noise_is_proved_by_fresh_brackets() -> None:
    kind, fields = find_problem("allocation-epsilon"), {"steps": 1000, "delta": 1e-6}
    noise = find_noise(kind, fields, 1.0)
    assert noise.short is not None
    assert noise.gap <= 1e-3
    assert 0.68 < noise.sigma < 0.71
    assert noise.brackets <= 14


def test_where_the_least_noise_of_the_domain_suffices_it_is_returned() -> None:
    kind = find_problem("unamplified-epsilon")
    noise = find_noise(kind, {"delta": 0.9999}, 10_000.0, precision=0.5)
    assert noise.sigma > DOMAIN[0]
    free = searched(brackets(lambda sigma: 0.1 / sigma), 200.0, 0.1)
    assert (free.sigma, free.short) == (DOMAIN[0], None)


def test_a_target_that_no_noise_reaches_is_uncovered() -> None:
    with pytest.raises(UncoveredError, match=r"No sigma in .* is proved to reach epsilon=1e-08: at sigma="):
        find_noise(GAUSS, {"delta": 1e-300}, 1e-8)


def test_a_limit_that_stops_every_bracket_is_told_as_a_limit() -> None:
    with pytest.raises(LimitError, match="Not started"):
        find_noise(GAUSS, {"delta": 1e-5}, 1.0, limit_seconds=1e-9)


@pytest.mark.parametrize(
    ("target", "precision"),
    [(0.0, 1e-3), (-1.0, 1e-3), (math.nan, 1e-3), (math.inf, 1e-3), (1.0, 0.0), (1.0, math.nan), (1.0, 2.0)],
)
def test_targets_and_precisions_outside_their_domains_are_refused(target: float, precision: float) -> None:
    with pytest.raises(DomainError, match=r"^Expected (epsilon|precision) in "):
        find_noise(GAUSS, {"delta": 1e-5}, target, precision=precision)


def test_a_misspelt_field_is_refused_before_the_search() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean delta"):
        find_noise(GAUSS, {"dleta": 1e-5}, 1.0)
