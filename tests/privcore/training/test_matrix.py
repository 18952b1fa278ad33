"""Brackets of matrix mechanisms enclose exact and simulated values, and agree with other problems.

`../data/matrix.csv` has values that were not computed by our engine: `exact:d` is a value to d digits, by
quadrature for at most 4 bins, and `mc:e` a simulated value with the standard error e.
"""

import csv
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privcore import Answer
from privcore.likelihood_ratio.correlated.chain import ChainMean
from privcore.likelihood_ratio.correlated.chains import shortest
from privcore.likelihood_ratio.correlated.majorants import cyclic
from privcore.likelihood_ratio.distribution import Resolution
from privcore.likelihood_ratio.profile import delta_lower, delta_upper
from privcore.likelihood_ratio.questions import Question
from privcore.training.brackets import enclosed_run
from privcore.training.matrix.bins import bins
from privcore.training.matrix.strategies import strategy
from tests.privcore.draws import answer, answered

ROWS = list(csv.DictReader((Path(__file__).parents[1] / "data" / "matrix.csv").read_text().splitlines()))
ERRORS = 4.0
"""Standard errors by which a simulated value may lie outside its bracket."""
WIDEST = 3.0
"""Largest ratio of both ends of epsilon in the rows below; docs/matrix.md has a map."""
SAME = 0.02
"""Relative width of a bracket of bins whose two covariances are the same."""


def bracket(quantity: str = "epsilon", /, **fields: Any) -> Answer:
    """Return the bracket of a matrix mechanism; epsilon at 1e-5 in both directions unless stated."""
    given = {"sampling": "balls-in-bins", "adjacency": "add-remove", **fields}
    at = {} if quantity == "delta" else {"delta": 1e-5}
    return answered(f"matrix-{quantity}", "matrix.certified", **(at | given))


def asked(row: dict[str, str]) -> tuple[dict[str, Any], float]:
    """Return the fields of a row, and its epsilon."""
    given = json.loads(row["params"])
    assert given["coefficients"] == "binom(2k,k)/4^k, unit norm"
    fields = {
        "strategy": f"banded-sqrt({given['bands']})",
        "sigma": given["sigma"],
        "steps": given["bins"],
        "epochs": given["epochs"],
        "adjacency": given["direction"],
    }
    return fields, given["epsilon"]


def value_of(row: dict[str, str]) -> tuple[float, float]:
    """Return the value of a row, and its largest error."""
    kind, _, number = row["digits_or_kind"].partition(":")
    value = float(row["value"])
    return value, ERRORS * float(number) if kind == "mc" else 10.0 ** -int(number) * value


def key(row: dict[str, str]) -> str:
    """Return the run of a row, without its epsilon."""
    return json.dumps({name: given for name, given in asked(row)[0].items() if name != "adjacency"})


RUNS = sorted({key(row) for row in ROWS})


@pytest.mark.parametrize("run", RUNS)
def test_the_reference_values_of_a_run_are_between_its_distributions(run: str) -> None:
    fields = json.loads(run)
    gram = strategy(fields["strategy"]).gram(fields["steps"], fields["epochs"]) / fields["sigma"] ** 2
    bounds, res = bins(gram), Resolution(fineness=0.15, tail=1e-14)
    below = [ratio.bracket(res).lower for ratio in bounds.below]
    above = [each.ratio.bracket(res).upper for each in bounds.above]
    for row in ROWS:
        if key(row) == run:
            (value, error), (given, epsilon) = value_of(row), asked(row)
            assert max(delta_lower(each, epsilon, given["adjacency"]) for each in below) <= value + error
            assert min(delta_upper(each, epsilon, given["adjacency"]) for each in above) >= value - error


@pytest.mark.parametrize("run", [run for run in RUNS if json.loads(run)["steps"] in {20, 50, 64, 100}])
def test_the_reference_values_in_direction_remove_are_below_a_chain(run: str) -> None:
    fields = json.loads(run)
    gram = strategy(fields["strategy"]).gram(fields["steps"], fields["epochs"]) / fields["sigma"] ** 2
    path = shortest(cyclic(gram))
    assert path is not None
    above = path.ratio.bracket(Resolution(fineness=0.1, tail=1e-13)).upper
    for row in ROWS:
        (value, error), (given, epsilon) = value_of(row), asked(row)
        if key(row) == run and given["adjacency"] == "remove":
            assert delta_upper(above, epsilon, "remove") >= value - error


@pytest.mark.parametrize("row", ROWS[:12:3], ids=lambda row: row["id"])
def test_a_reference_value_is_in_its_bracket(row: dict[str, str]) -> None:
    (value, error), (fields, epsilon) = value_of(row), asked(row)
    found = bracket("delta", **fields, epsilon=epsilon)
    assert found.lower - error <= value <= found.upper + error


@pytest.mark.sampled(3)
@pytest.mark.parametrize("row", ROWS[16::16], ids=lambda row: row["id"])
def test_a_bracket_of_epsilon_at_a_reference_value_has_a_moderate_width(row: dict[str, str]) -> None:
    fields, epsilon = asked(row)
    found = bracket(**fields, delta=float(row["value"]))
    assert found.lower <= epsilon * 1.01
    assert epsilon <= found.upper * 1.01
    assert found.upper <= WIDEST * found.lower


def test_the_identity_in_bins_is_balls_in_bins_sampling() -> None:
    run = {"sigma": 1.5, "steps": 20, "epochs": 4, "delta": 1e-5, "adjacency": "add-remove"}
    found = bracket(strategy="toeplitz(1)", **run)
    bins = answered("balls-in-bins-epsilon", "bins.certified", **run, redraw="once")
    assert found.lower <= bins.upper
    assert bins.lower <= found.upper
    assert found.upper <= found.lower * (1.0 + SAME)


def test_a_multiple_of_the_identity_is_less_noise() -> None:
    run = {"steps": 20, "epochs": 4}
    (once, twice) = (bracket(strategy=f"toeplitz({c})", sigma=1.5 * c, **run) for c in (1, 2))
    assert once.lower == pytest.approx(twice.lower, rel=1e-6)
    assert once.upper == pytest.approx(twice.upper, rel=1e-6)


@pytest.mark.parametrize("sampling", ["none", "balls-in-bins", "cyclic-poisson"])
def test_with_one_step_an_epoch_no_sampling_protects(sampling: str) -> None:
    found = bracket(sampling=sampling, strategy="toeplitz(0.6,0.8)", sigma=2.0, steps=1, epochs=3)
    mean = np.sqrt(0.6**2 + 1.4**2 + 1.4**2)
    exact = answered("unamplified-epsilon", "unamplified.exact", sigma=2.0 / mean, delta=1e-5)
    if sampling == "cyclic-poisson":  # with overlapping columns, the lower end leaves the overlaps out
        assert found.lower < exact.upper
    else:
        assert found.lower == pytest.approx(exact.lower, rel=0.01)
        assert found.lower <= exact.upper
    assert found.upper == pytest.approx(exact.upper, rel=1e-6)
    assert exact.lower <= found.upper


@pytest.mark.parametrize("strategy", ["toeplitz(1)", "banded-sqrt(7)", "toeplitz(0.6,0.8)"])
@pytest.mark.parametrize("adjacency", ["add-remove", "remove", "add", "zero-out", "replace-one"])
def test_cyclic_sampling_is_a_poisson_run_with_a_step_in_each_epoch(strategy: str, adjacency: str) -> None:
    found = bracket(
        sampling="cyclic-poisson",
        strategy=strategy,
        sigma=1.2,
        steps=9,
        epochs=12,
        sampling_probability=0.2,
        adjacency=adjacency,
    )
    run = "poisson(sigma=1.2,sampling_probability=0.2,steps=12)"
    poisson = answered("run-epsilon", "runs.certified", phases=run, adjacency=adjacency, delta=1e-5)
    assert found.lower <= poisson.upper
    assert poisson.lower <= found.upper
    assert found.upper <= found.lower * 1.002


def test_with_more_bands_than_steps_cyclic_sampling_is_between_a_poisson_run_and_no_amplification() -> None:
    run = {"strategy": "banded-sqrt(8)", "sigma": 3.0, "steps": 4, "epochs": 5}
    found = bracket(sampling="cyclic-poisson", sampling_probability=0.1, **run)
    poisson = answered(
        "poisson-epsilon", "poisson.certified", sigma=3.0, steps=4, sampling_probability=0.1, delta=1e-5
    )
    public = bracket(sampling="none", **run)
    assert poisson.lower <= found.lower < found.upper <= public.upper * (1.0 + 1e-6)


@pytest.mark.parametrize("sampling", ["none", "cyclic-poisson", "balls-in-bins"])
def test_epsilon_falls_with_noise_and_grows_with_epochs(sampling: str) -> None:
    run = {"sampling": sampling, "strategy": "banded-sqrt(3)", "steps": 6}
    if sampling == "cyclic-poisson":
        run["sampling_probability"] = 0.3
    noises = [bracket(sigma=sigma, epochs=2, **run) for sigma in (1.0, 2.0, 4.0)]
    lengths = [bracket(sigma=2.0, epochs=epochs, **run) for epochs in (1, 2, 8)]
    for less, more in (*pairwise(reversed(noises)), *pairwise(lengths)):
        assert less.lower <= more.lower * (1.0 + SAME)
        assert less.upper <= more.upper * (1.0 + SAME)


@pytest.mark.parametrize("adjacency", ["remove", "add"])
def test_both_directions_are_at_least_one_of_them(adjacency: str) -> None:
    run = {"strategy": "banded-sqrt(4)", "sigma": 2.0, "steps": 12, "epochs": 3}
    both, one = bracket(**run), bracket(**run, adjacency=adjacency)
    assert one.lower <= both.upper
    assert one.upper <= both.upper * (1.0 + 1e-9)
    assert bracket(**run, adjacency="zero-out") == both


def test_delta_of_two_bins_agrees_with_quadrature() -> None:
    own, common, epsilon = 0.8, 0.5, 0.7
    truth = of_two_bins(own, common, epsilon)
    found = answered_gram(np.array([[own, common], [common, own]]), epsilon)
    assert found.lower <= truth * 1.02
    assert truth <= found.upper * 1.02
    chain = ChainMean(None, own, common / own, 2, 1.0).bracket(Resolution(fineness=0.1, tail=1e-12))
    assert truth <= delta_upper(chain.upper, epsilon, "remove") <= truth * 1.05
    assert delta_upper(chain.upper, epsilon, "add") >= 1.0, "nothing is proved in this direction"


def of_two_bins(own: float, common: float, epsilon: float) -> float:
    """Return delta, in direction remove, of two bins, by quadrature over the sum and the difference."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights /= np.sqrt(2.0 * np.pi)
    along, across = np.sqrt(0.5 * (own + common)), np.sqrt(0.5 * (own - common))
    y = along * nodes[:, None] + across * nodes[None, :], along * nodes[:, None] - across * nodes[None, :]
    x = 0.5 * (np.exp(y[0] - 0.5 * own) + np.exp(y[1] - 0.5 * own))
    return float(weights @ np.maximum(x - np.exp(epsilon), 0.0) @ weights)


def answered_gram(gram: Any, epsilon: float) -> Answer:
    """Return the bracket of delta, in direction remove, for the Gram matrix of the bins."""
    question = Question(asks="delta", at=epsilon, adjacency="remove")
    lower, upper, detail = enclosed_run(bins(gram), question, 0.01, float(np.sqrt(gram.max())))
    return Answer.enclosure(lower, upper, detail=detail)


@pytest.mark.parametrize("seed", range(4))
def test_a_simulation_of_any_gram_matrix_is_in_its_bracket(seed: int) -> None:
    draws, size = 50_000, 7
    random = np.random.default_rng(seed)
    total = (3 * size, 3 * size)
    matrix = np.tril(random.exponential(size=total) * (random.random(total) < 0.2))
    means = matrix.reshape(3 * size, 3, size).sum(axis=1) + 0.2 * np.eye(3 * size, size)
    gram = means.T @ means
    gram *= 1.5 / gram.max()
    y = random.standard_normal((draws, size)) @ np.linalg.cholesky(gram + 1e-12 * np.eye(size)).T
    x = np.exp(y - 0.5 * gram.diagonal()).mean(axis=1)
    values = np.maximum(x - np.exp(0.5), 0.0)
    found = answered_gram(gram, 0.5)
    error = ERRORS * float(values.std()) / np.sqrt(draws)
    assert found.lower <= values.mean() + error
    assert values.mean() - error <= found.upper


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"sampling": "balls-in-bins", "adjacency": "replace-one"}, "replaced example"),
        ({"sampling": "balls-in-bins", "steps": 5000}, "at most 2048 steps"),
        ({"sampling": "balls-in-bins", "steps": 2000, "epochs": 1000}, "Expected steps"),
    ],
)
def test_a_run_that_is_not_covered_gets_a_sentence(fields: dict[str, Any], reason: str) -> None:
    run = {"strategy": "banded-sqrt(4)", "sigma": 2.0, "steps": 10, "epochs": 2, "delta": 1e-5}
    found = answer("matrix-epsilon", "matrix.certified", **({"adjacency": "zero-out"} | run | fields))
    assert found.status == "not_applicable"
    assert reason in found.detail
