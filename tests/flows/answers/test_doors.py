"""The same training run has the same two ends, to the bit, wherever it is asked about."""

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dp_accounting
import pytest

import privsweep as ps
from flows.answers.held import CertifiedEpsilon
from flows.answers.noise import confirmed, find_noise
from flows.answers.parse import completed, problem_of
from flows.answers.sourced import asked_until_tight, computed
from flows.answers.training_run import adjacency_of, phases_of
from privcore import Answer, Problem, find_problem
from privcore.accountant import PrivsweepAccountant, from_opacus
from privcore.params import SIGMA
from privcore.training import run_profile, written
from storage import open_store
from tests.flows.small_store import Command
from tests.storage.made_up import epsilon, put, row

RUNS = 200
SAMPLERS = {
    "poisson": ("add-remove", "remove", "add", "zero-out", "replace-one"),
    "allocation": ("add-remove", "remove", "add"),
    "none": ("add-remove", "replace-one"),
    "balls-in-bins": ("add-remove", "zero-out", "replace-one"),
    "fixed-size": ("add-remove", "zero-out", "replace-one"),
    "with-replacement": ("zero-out", "replace-one"),
    "truncated-poisson": ("add-remove", "zero-out"),
    "shuffling": ("zero-out", "replace-one"),
}
"""Neighbouring relations that are drawn for each sampler."""
RELATIONS = {
    "add-remove": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "zero-out": dp_accounting.NeighboringRelation.REPLACE_SPECIAL,
    "replace-one": dp_accounting.NeighboringRelation.REPLACE_ONE,
}
ONE_METHOD = ("balls-in-bins", "fixed-size", "with-replacement", "truncated-poisson")
"""Samplers whose questions have one method, so that `ask`, which uses all, is quick."""
SLOW_EVERY = 10
"""Every tenth run is also asked about at the doors that take seconds."""

Ends = tuple[float, float]


def drawn(number: int) -> tuple[str, dict[str, Any]]:
    """Return a sampler, and the arguments of a run."""
    draw = random.Random(number)
    sampling = list(SAMPLERS)[number % len(SAMPLERS)]
    steps = draw.choice([1, 7, 50, 234, 1000])
    fields: dict[str, Any] = {
        "sigma": float(f"{draw.uniform(0.6, 4.0):.4g}"),
        "delta": float(f"{10 ** draw.uniform(-9.0, -4.0):.3g}"),
        "adjacency": draw.choice(SAMPLERS[sampling]),
        "epochs": draw.choice([1, 1, 3, 10]),
    }
    if sampling != "none":
        fields["steps"] = steps
    if sampling in ("poisson", "fixed-size", "truncated-poisson"):
        fields["sampling_probability"] = float(f"{10 ** draw.uniform(-3.0, -0.7):.3g}")
    if sampling in ("with-replacement", "truncated-poisson"):
        fields["examples"] = draw.choice([100, 5000])
    if sampling == "with-replacement":
        fields["batch_size"] = draw.choice([1, 5, 20])
    if sampling == "truncated-poisson":
        mean = fields["sampling_probability"] * fields["examples"]
        fields["largest_batch"] = min(fields["examples"], 1 + int(1.3 * mean))
    if sampling in ("balls-in-bins", "shuffling") and fields["epochs"] > 1:
        fields["redraw"] = draw.choice(["once", "each-epoch"])
    return sampling, fields


def problem_about(sampling: str, fields: Mapping[str, Any]) -> Problem:
    return problem_of(sampling).from_fields(completed(sampling, fields))


def in_sql(sampling: str, fields: Mapping[str, Any]) -> Ends:
    arguments = {"sampling": sampling, **fields}
    listed = ", ".join(f"{name} := {json.dumps(value)}" for name, value in arguments.items())
    query = f"select certified_epsilon({listed.replace(chr(34), chr(39))}) as found"
    put(Path("other"), row(epsilon(), Answer.enclosure(4.37717, 4.37718)))  # a query needs a store
    with open_store("other") as store:
        (one,) = store.sql(query, functions=[CertifiedEpsilon(store).function]).to_pylist()
    return one["found"]["lower"], one["found"]["upper"]


def by_accountant(sampling: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, Ends]]:
    """Yield the intervals of the accountants that have this sampler and relation."""
    relation = RELATIONS.get(fields["adjacency"])
    if relation is None:
        return
    noise, times = dp_accounting.GaussianDpEvent(fields["sigma"]), fields.get("steps", 1) * fields["epochs"]
    rate, size = fields.get("sampling_probability"), fields.get("examples")
    event = {
        "poisson": lambda: dp_accounting.PoissonSampledDpEvent(rate, noise),
        "none": lambda: noise,
        "with-replacement": lambda: dp_accounting.SampledWithReplacementDpEvent(
            size, fields["batch_size"], noise
        ),
        "truncated-poisson": lambda: dp_accounting.TruncatedSubsampledGaussianDpEvent(
            size, rate, fields["largest_batch"], fields["sigma"]
        ),
    }.get(sampling)
    if event is None:
        return
    sensitivity = 2 if fields["adjacency"] == "replace-one" else None
    accountant = PrivsweepAccountant(relation, sensitivity)
    yield "accountant", accountant.compose(event(), times).get_epsilon_interval(fields["delta"])
    if sampling == "poisson":
        run = from_opacus([(fields["sigma"], rate, times)], "poisson", fields["adjacency"])
        yield "Opacus", run.get_epsilon_interval(fields["delta"])


def quick_doors(sampling: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, Ends]]:
    problem = problem_about(sampling, fields)
    found = ps.epsilon(sampling=sampling, **fields)
    yield "ps.epsilon", (found.lower, found.upper)
    run, relation = written(phases_of(problem)), adjacency_of(problem)
    found = ps.ask("run-epsilon", phases=run, adjacency=relation, delta=fields["delta"])
    yield "ps.ask run-epsilon", (found.lower, found.upper)
    if sampling in ONE_METHOD:
        given: dict[str, Any] = problem.as_fields()
        found = ps.ask(problem.name, **given)
        yield "ps.ask", (found.lower, found.upper)
    yield "certified_epsilon", in_sql(sampling, fields)
    if sampling in ("allocation", "none") and fields["adjacency"] == "add-remove":
        shared = {name: fields[name] for name in ("sigma", "delta", "epochs")}
        compared = ps.compare(**shared, steps=fields.get("steps", 1))
        yield "ps.compare", (compared[sampling].lower, compared[sampling].upper)
    yield from by_accountant(sampling, fields)


def slow_doors(sampling: str, fields: Mapping[str, Any], command: Command) -> Iterator[tuple[str, Ends]]:
    problem = problem_about(sampling, fields)
    phases, relation = written(phases_of(problem)), adjacency_of(problem)
    profile = run_profile(phases, relation, {"delta": [fields["delta"]]})
    line = next(each for each in profile.lines if each.quantity == "epsilon")
    yield "profile", (line.lower, line.upper)
    options = [f"--{name.replace('_', '-')}={value}" for name, value in fields.items()]
    assert command("epsilon", "--sampling", sampling, *options, "--json") == 0
    yield "privsweep epsilon", (command.json["lower"], command.json["upper"])


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("number", range(RUNS))
def test_a_drawn_run_has_the_same_two_ends_at_every_door(
    number: int, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sampling, fields = drawn(number)
    bracket = computed(problem_about(sampling, fields)).bracket
    found = dict(quick_doors(sampling, fields))
    if number // len(SAMPLERS) % SLOW_EVERY == 0:
        found |= dict(slow_doors(sampling, fields, command))
    assert len(found) >= 3
    assert found == dict.fromkeys(found, (bracket.lower, bracket.upper)), (sampling, fields)


@pytest.mark.parametrize("sampling", ["poisson", "allocation", "none"])
def test_the_least_noise_has_the_ends_of_epsilon_at_this_noise(sampling: str) -> None:
    fields: dict[str, Any] = {"steps": 100, "delta": 1e-5}
    if sampling == "poisson":
        fields["sampling_probability"] = 0.01
    kind = problem_of(sampling)
    found = confirmed(find_noise(kind, fields, 2.0), asked_until_tight, precision=1e-3, largest=SIGMA.upper)
    bracket = computed(find_problem(kind.name).from_fields({**fields, "sigma": found.sigma})).bracket
    assert (found.enough.lower, found.enough.upper) == (bracket.lower, bracket.upper)
