"""Relations between mechanisms: orders, limits, martingales, accurate tails."""

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcore import Point, evaluate, find_problem, methods_for
from privcore.distributions.prior_notation import prior
from privcore.labels.sums.noisy_sums import advantages, at_nodes, released, sides
from privcore.labels.sums.poisson_binomial import FLOOR, binomial, leave_one_out, pmf, relative_error
from privcore.labels.sums.rows import exact_at, nodes_needed, quick_advantage
from tests.privcore.draws import answer

ETAS = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12)
EPSILONS = st.floats(0.02, 30.0)
each_prior = pytest.mark.parametrize(
    "text",
    ["uniform", "beta(2,30)", "beta(0.3,0.7)", "logit-normal(-3.661,1.1815)", "two-point(0.05,0.7,0.25)"],
)


def simulated(name: str, **fields: Any) -> float:
    value = answer(name, "labels.sampling", **fields).value
    assert value is not None
    return value


@given(ETAS, EPSILONS, st.floats(0.02, 5.0))
def test_more_noise_and_more_examples_reveal_less_bag_by_bag(
    values: list[float], epsilon: float, more: float
) -> None:
    etas = np.array(values)
    laws = leave_one_out(etas)
    exact, geometric = exact_at(etas, *released(laws, math.inf)), exact_at(etas, *released(laws, epsilon))
    laplace = advantages(laws, epsilon, etas)
    response = np.maximum(0.0, np.minimum(etas, 1.0 - etas) - 1.0 / (1.0 + math.exp(epsilon)))
    slack = 1e-12
    assert (laplace <= geometric + slack).all()
    assert (geometric <= np.minimum(response, exact) + slack).all()
    assert (geometric <= exact_at(etas, *released(laws, epsilon + more)) + slack).all()
    assert (laplace <= advantages(laws, epsilon + more, etas) + slack).all()
    larger = leave_one_out(np.append(etas, 0.3))[:-1]
    assert (exact_at(etas, *released(larger, math.inf)) <= exact + slack).all()
    assert (exact_at(etas, *released(larger, epsilon)) <= geometric + slack).all()
    assert (advantages(larger, epsilon, etas) <= laplace + slack).all()


@given(ETAS, EPSILONS)
def test_the_released_law_is_the_same_seen_from_every_member(values: list[float], epsilon: float) -> None:
    etas = np.array(values)
    for noise in (math.inf, epsilon):
        one, zero = released(leave_one_out(etas), noise)
        law = etas[:, None] * one + (1.0 - etas[:, None]) * zero
        assert law == pytest.approx(np.broadcast_to(law[0], law.shape), rel=1e-12, abs=1e-15)
        assert one.sum(axis=1) == pytest.approx(np.ones(etas.size), rel=1e-13)


@given(ETAS)
def test_posteriors_are_a_martingale_and_add_up_to_the_count(values: list[float]) -> None:
    etas = np.array(values)
    one, _ = released(leave_one_out(etas), math.inf)
    joint = etas[:, None] * one
    total = pmf(etas)
    assert joint.sum(axis=1) == pytest.approx(etas, abs=1e-13)
    assert joint.sum(axis=0) == pytest.approx(np.arange(etas.size + 1) * total, abs=1e-13)


@given(st.lists(st.floats(0.001, 0.999), min_size=1, max_size=12), EPSILONS)
def test_the_ratio_rises_with_what_is_released(values: list[float], epsilon: float) -> None:
    laws = leave_one_out(np.array(values))
    one, zero = released(laws, epsilon)
    ratio = np.log(one) - np.log(zero)
    assert (np.diff(ratio) >= -1e-9).all()
    assert (np.abs(ratio) <= epsilon + 1e-9).all()
    masses = [sides(laws, epsilon, math.exp(-t), 1.0)[:, 2] for t in np.linspace(-epsilon, epsilon, 9)]
    assert (np.diff(masses, axis=0) <= 1e-12).all()


@given(st.floats(0.0, 1.0), EPSILONS)
def test_a_bag_of_one_is_randomized_response_or_has_a_closed_form(eta: float, epsilon: float) -> None:
    law, etas = np.ones((1, 1)), np.array([eta])
    flipped = 1.0 / (1.0 + math.exp(epsilon))
    response = max(0.0, min(eta, 1.0 - eta) - flipped)
    assert exact_at(etas, *released(law, epsilon))[0] == pytest.approx(response, abs=1e-14)
    if 0.0 < eta < 1.0 and abs(math.log(eta) - math.log1p(-eta)) < epsilon:
        laplace = min(eta, 1.0 - eta) - math.sqrt(eta * (1.0 - eta)) * math.exp(-0.5 * epsilon)
    else:
        laplace = 0.0
    assert advantages(law, epsilon, etas)[0] == pytest.approx(laplace, abs=1e-14)


@pytest.mark.parametrize(("p", "j"), list(itertools.product((0.01, 0.3, 0.5, 0.8), (1, 2, 7, 40))))
def test_one_more_example_in_an_even_bag_of_equal_examples_reveals_as_much(p: float, j: int) -> None:
    even, odd = (
        answer("label-advantage", "labels.composition", mechanism="llp", prior=f"point({p})", bag_size=k)
        for k in (2 * j, 2 * j + 1)
    )
    assert even.lower == pytest.approx(odd.lower, rel=1e-10)


@each_prior
@pytest.mark.parametrize("bag_size", [2, 5, 17])
def test_simulated_orders_hold_without_any_error(text: str, bag_size: int) -> None:
    """All mechanisms are evaluated on the same bags, so the order of their means is exact."""
    epsilons = (0.0625, 1.0, 8.0)
    values = {
        (mechanism, epsilon): simulated(
            "label-advantage",
            mechanism=mechanism,
            prior=text,
            bag_size=bag_size,
            label_epsilon=epsilon,
        )
        for mechanism, epsilon in [
            ("llp", math.inf),
            *itertools.product(("llp-geometric", "llp-laplace"), epsilons),
        ]
    }
    for epsilon in epsilons:
        geometric, laplace = values["llp-geometric", epsilon], values["llp-laplace", epsilon]
        assert laplace <= geometric * (1.0 + 2e-5)
        assert geometric <= values["llp", math.inf] * (1.0 + 2e-5)
        response = answer(
            "label-advantage", "labels.response", mechanism="rr", prior=text, label_epsilon=epsilon
        )
        assert geometric <= response.upper * (1.0 + 2e-5) + 10.0 * FLOOR, "rounding of a simulated zero"


@pytest.mark.thorough
@each_prior
def test_laplace_noise_is_integrated_as_finely_as_it_needs(text: str) -> None:
    """Quadrature over the line against exact thresholds, averaged over the distribution of the example."""
    law = prior(text)
    etas = law.draw(np.random.default_rng(5), (40, 6))
    laws = pmf(etas)
    for epsilon in (0.05, 0.5, 1.9, 2.1, 5.0, 8.1, 15.0, 33.0, 300.0):
        nodes, error = nodes_needed(laws, epsilon, law)
        quick = quick_advantage(laws, "llp-laplace", epsilon, law, nodes)
        finest = quick_advantage(laws, "llp-laplace", epsilon, law, 200)
        assert quick.mean() == pytest.approx(finest.mean(), rel=error + 1e-6)
        assert error < 1e-4
        grid = np.linspace(0.0, 1.0, 4001)[1:-1:2]
        if law.atoms is not None:
            grid, weights = law.atoms
        else:
            weights = np.array([law.between(x - 0.5 / 2000, x + 0.5 / 2000) for x in grid])
        exact = sum(
            w * sides(laws, epsilon, x, 1.0 - x)[:, 0 if x <= 0.5 else 1]
            for x, w in zip(grid.tolist(), weights.tolist(), strict=True)
        )
        assert quick == pytest.approx(exact, rel=1e-2, abs=1e-12)
        one, zero = at_nodes(laws, epsilon, nodes)
        assert one.sum(axis=1) == pytest.approx(np.ones(40), rel=1e-5)
        assert zero.sum(axis=1) == pytest.approx(np.ones(40), rel=1e-5)


def exact_law(etas: list[float]) -> list[mpmath.mpf]:
    with mpmath.workdps(40):
        law = [mpmath.mpf(1)]
        for eta in map(mpmath.mpf, etas):
            following = [mpmath.mpf(0)] * (len(law) + 1)
            for s, x in enumerate(law):
                following[s] += x * (1 - eta)
                following[s + 1] += x * eta
            law = following
        return law


@pytest.mark.thorough
@pytest.mark.parametrize("spread", ["uniform", "beta(2,30)", "logit-normal(-8,3)"])
def test_leave_one_out_laws_of_512_have_relative_accuracy_in_both_tails_to_1e_200(spread: str) -> None:
    etas = prior(spread).draw(np.random.default_rng(7), (512,))
    laws = leave_one_out(etas)
    for j in (0, 255, 511):
        truth = exact_law(np.delete(etas, j).tolist())
        checked = 0
        for s, x in enumerate(truth):
            if x > FLOOR:
                assert abs(mpmath.mpf(laws[j, s]) / x - 1) <= relative_error(512)
                checked += x < mpmath.mpf(10) ** -200
        assert checked or spread == "uniform"


@pytest.mark.parametrize(
    ("trials", "p"), [(0, 0.3), (1, 0.0), (7, 1.0), (511, 0.0625), (2000, 0.5), (300, 1e-9)]
)
def test_the_binomial_law_is_accurate_in_both_tails(trials: int, p: float) -> None:
    law = binomial(trials, p)
    with mpmath.workdps(40):
        for s in range(0, trials + 1, max(1, trials // 50)):
            truth = mpmath.binomial(trials, s) * mpmath.mpf(p) ** s * (1 - mpmath.mpf(p)) ** (trials - s)
            if truth > FLOOR:
                assert abs(mpmath.mpf(law[s]) / truth - 1) <= relative_error(trials)


@each_prior
def test_every_method_for_a_few_bags_agrees(text: str) -> None:
    for mechanism, epsilon, bag_size in (
        ("llp", math.inf, 3),
        ("llp-geometric", 1.0, 4),
        ("llp-laplace", 2.0, 3),
    ):
        problem = find_problem("label-advantage").from_fields(
            {"mechanism": mechanism, "prior": text, "bag_size": bag_size, "label_epsilon": epsilon}
        )
        answers = {
            method.name: evaluate(Point(problem=problem, method=method()))
            for method, reason in methods_for(problem).items()
            if reason is None
        }
        for one, other in itertools.combinations(answers, 2):
            assert answers[one].lower <= answers[other].upper, (one, other)
            assert answers[other].lower <= answers[one].upper, (one, other)


def test_eta_0_and_1_are_certain_and_reveal_others() -> None:
    ends = [
        answer("label-posterior", "labels.bag", mechanism="llp", bag="0,1,0.3", released=z, member=3)
        for z in (1.0, 2.0)
    ]
    assert ends[0].lower == 0.0
    assert ends[0].upper < 1e-250
    assert ends[1].lower > 1.0 - 1e-14
    assert ends[1].upper == 1.0
    for member, truth in ((1, 0.0), (2, 1.0)):
        sure = answer(
            "label-posterior", "labels.bag", mechanism="llp", bag="0,1,0.3", released=1, member=member
        )
        assert sure.lower == pytest.approx(truth, abs=1e-14)
        assert sure.upper == pytest.approx(truth, abs=1e-14)
    for mechanism in ("llp", "rr"):
        nothing = answer(
            "label-advantage",
            "labels.response" if mechanism == "rr" else "labels.composition",
            mechanism=mechanism,
            prior="point(1)",
            label_epsilon=1.0 if mechanism == "rr" else math.inf,
        )
        assert nothing.upper < 1e-250


@pytest.mark.parametrize(
    ("k", "epsilon", "log_ratio"), [(512, 4.0, 2.0), (64, 4.0, 3.0), (200, 8.0, 3.0), (64, 4.0, 3.9)]
)
def test_tails_of_laplace_noise_keep_their_digits_far_out(k: int, epsilon: float, log_ratio: float) -> None:
    """For equal examples at 1/2 both tails are equal: the result is twice the mass of the upper tail."""
    found = answer(
        "label-ratio-tail",
        "labels.composition",
        mechanism="llp-laplace",
        prior="point(0.5)",
        bag_size=k,
        label_epsilon=epsilon,
        log_ratio=log_ratio,
    )
    masses = sides(binomial(k - 1, 0.5)[None, :], epsilon, math.exp(-log_ratio), 1.0)[0]
    assert 0.0 < found.lower <= masses[2] + masses[3] <= found.upper * (1.0 + 1e-12)
    assert found.upper <= found.lower * (1.0 + 1e-9)


@pytest.mark.parametrize("eta", [1e-16, 1e-100])
@pytest.mark.parametrize("epsilon", [40.0, 300.0, 700.0])
def test_a_single_label_with_laplace_noise_keeps_its_digits_at_any_epsilon(
    eta: float, epsilon: float
) -> None:
    with mpmath.workdps(400):
        x = mpmath.mpf(eta)
        truth = x - mpmath.sqrt(x * (1 - x)) * mpmath.exp(-mpmath.mpf(epsilon) / 2)
    found = answer(
        "label-advantage",
        "labels.composition",
        mechanism="llp-laplace",
        prior=f"point({eta})",
        label_epsilon=epsilon,
    )
    if truth <= 0 or -math.log(eta) >= epsilon:
        assert found.lower == 0.0
    else:
        assert found.lower <= truth <= found.upper
        assert found.upper <= float(truth) * (1.0 + 1e-9)


@pytest.mark.parametrize("w", [1e-6, 1e-10, 1e-13, 1e-15, 0.3])
def test_rare_values_of_a_prior_have_exact_weights(w: float) -> None:
    """At least one of two examples has eta = 1/2 with probability 2 w - w^2."""
    found = answer(
        "label-advantage-tail",
        "labels.composition",
        mechanism="llp",
        prior=f"two-point(0,0.5,{w})",
        bag_size=2,
        threshold=0.1,
    )
    with mpmath.workdps(40):
        truth = 2 * mpmath.mpf(w) - mpmath.mpf(w) ** 2
        assert found.lower <= truth <= found.upper


@pytest.mark.parametrize("epsilon", [1e-6, 1e-5, 1e-3])
def test_quadrature_holds_where_noise_is_nearly_all(epsilon: float) -> None:
    found = answer(
        "label-advantage",
        "labels.gauss",
        mechanism="llp-geometric",
        prior="uniform",
        bag_size=2,
        label_epsilon=epsilon,
    )
    assert found.ok
    truth = epsilon**2 / 16.0  # to second order, as for randomized response
    assert found.lower <= truth * (1.0 + epsilon)
    assert truth * (1.0 - epsilon - 1e-5) <= found.upper


@pytest.mark.thorough
def test_bags_of_almost_certain_labels_are_not_taken_for_unusual() -> None:
    found = answer(
        "label-advantage-at",
        "labels.sampling",
        mechanism="llp",
        prior="point(0.99999)",
        bag_size=5000,
        eta=0.5,
    )
    truth = answer(
        "label-advantage-at",
        "labels.composition",
        mechanism="llp",
        prior="point(0.99999)",
        bag_size=5000,
        eta=0.5,
    )
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper


def test_no_epsilon_and_no_bag_is_too_large_for_laplace_noise() -> None:
    for bag_size, eta in ((10**6, 0.3), (1000, 1.0), (3, 0.5)):
        found = answer(
            "label-advantage-at",
            "labels.composition",
            mechanism="llp-laplace",
            prior="point(0.3)",
            bag_size=bag_size,
            label_epsilon=700.0,
            eta=eta,
        )
        assert found.ok, found
