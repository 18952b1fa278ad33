"""Upper ends of the table relative to computed ones, for usual questions; a section of bench.py."""

import math
import random
import statistics
from collections.abc import Iterator
from functools import cache
from typing import Any

from flows.answers.ask import Asked, ask, is_tight
from flows.answers.held import WIDE, any_held, tightened
from privcore import Problem, find_problem
from privcore.training import from_sizes
from storage import Store
from storage.table.shipped import shipped_store, shipped_version
from tests.benchmarks.measure import head, row, verdict

QUESTIONS = 200
"""Questions of all topics together."""
EXAMPLES = (10_000, 25_000, 32_561, 50_000, 60_000, 67_349, 104_743, 392_702, 1_281_167)
"""Sizes of data sets that people train on, such as MNIST, CIFAR-10, SST-2, MNLI and ImageNet."""
BATCHES = (32, 64, 128, 256, 512, 1024, 2048, 4096)
EPOCHS = (1, 2, 3, 5, 8, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100)
TRAINING = {"allocation": 60, "poisson": 60, "shuffling": 20, "unamplified": 20}
"""Numbers of questions about training runs; the others are about labels, audits and membership."""
OTHERS = {"labels": 14, "audits": 13, "membership": 13}


def drawn() -> list[tuple[str, Problem]]:
    """Return the questions, each with its topic; always the same."""
    rng = random.Random("questions of practitioners")
    found = [(topic, _run(topic, rng)) for topic, count in TRAINING.items() for _ in range(count)]
    return found + [(topic, _other(topic, rng)) for topic, count in OTHERS.items() for _ in range(count)]


def _run(topic: str, rng: random.Random) -> Problem:
    """Return a question about a training run of n examples in batches of b."""
    examples = rng.choice(EXAMPLES)
    fields: dict[str, Any] = {
        "sigma": float(f"{math.exp(rng.uniform(math.log(0.5), math.log(4.0))):.2g}"),
        "epochs": rng.choice(EPOCHS),
        "delta": rng.choice([1e-5, 1e-5, 1e-6, 1e-6, 1e-8, float(f"{1 / examples:.1g}"), 1 / examples]),
    }
    if topic == "shuffling":
        fields |= {"redraw": "one-epoch" if fields["epochs"] == 1 else "each-epoch", "adjacency": "zero-out"}
    batch = rng.choice([size for size in BATCHES if size <= examples / 20])
    sizes = {} if topic == "unamplified" else {"examples": examples, "batch_size": batch}
    return from_sizes(find_problem(f"{topic}-epsilon"), fields | sizes)


def _other(topic: str, rng: random.Random) -> Problem:
    """Return a question about labels, an audit, or membership inference."""
    if topic == "labels":
        fields: dict[str, Any] = {"mechanism": "rr", "prior": rng.choice(["uniform", "point(0.5)"])}
        fields["label_epsilon"] = round(rng.uniform(0.1, 8.0), 1)
        return find_problem("label-advantage").from_fields(fields)
    if topic == "audits":
        canaries = rng.choice([1000, 2000, 5000, 10_000, 50_000])
        fields = {"canaries": canaries, "guesses": canaries // rng.choice([2, 10]), "delta": 1e-5}
        return find_problem("audit-planned-epsilon").from_fields(
            fields | {"mu": rng.choice([0.5, 1.0, 2.0]), "family": "gaussian"}
        )
    return find_problem("membership-private-advantage").from_fields(
        {"claimed_epsilon": round(rng.uniform(0.1, 8.0), 1), "claimed_delta": rng.choice([1e-6, 1e-5])}
    )


def table() -> Iterator[str]:
    """Yield the ratios of each topic, with stored rows alone and with `--compute`."""
    shipped = shipped_store()
    if shipped is None:
        yield "no shipped table"
        return
    yield f"The shipped table, version {shipped_version()}; {QUESTIONS} drawn questions."
    yield ""
    yield head(
        ["topic", "questions", "answered", "median", "90 %", "worst", "within 5 %", "with --compute: worst"]
    )
    all_tight, medians = 0, {}
    for topic in (*TRAINING, *OTHERS):
        questions = [problem for name, problem in drawn() if name == topic]
        stored = [_ratio(shipped, problem) for problem in questions]
        computed = [_ratio(shipped, problem, compute=True) for problem in questions]
        all_tight += sum(ratio <= 1.0 + WIDE for ratio in computed)
        known = sorted(ratio for ratio in stored if ratio < math.inf)
        medians[topic] = statistics.median(known) if known else math.inf
        places = (medians[topic], known[math.ceil(0.9 * len(known)) - 1], known[-1]) if known else ()
        ratios = [f"{ratio:.3f}" for ratio in places] or ["", "", ""]
        within = str(sum(ratio <= 1.0 + WIDE for ratio in known))
        cells = [topic, str(len(stored)), str(len(known)), *ratios, within]
        yield row([*cells, f"{max(computed):.3f}"])
    yield ""
    yield (
        "Ratios are those of the answered questions. Shuffling and audits are answered only at stored "
        "numbers of steps, canaries and guesses, since no trend is proved in them."
    )
    yield ""
    for topic in ("allocation", "poisson"):
        yield verdict(f"a median of 1.25 for {topic}", f"{medians[topic]:.3f}", medians[topic] <= 1.25)
    told = f"{all_tight} of {QUESTIONS}"
    yield verdict("with --compute, within 5 % of the computed bracket", told, all_tight == QUESTIONS)


def _ratio(store: Store, problem: Problem, *, compute: bool = False) -> float:
    """Return the ratio of an answer of the store, or with `compute` of a tight one."""
    answer = any_held(store, problem)
    if compute:
        answer = tightened(problem, answer)
    ends = None if answer is None else (answer.bracket.lower, answer.bracket.upper)
    return upper_ratio(problem, true_bracket(problem), ends)


@cache
def true_bracket(problem: Problem) -> Asked:
    """Return the computed bracket of a question."""
    return ask(problem, until=lambda asked: is_tight(asked, 0.01))


def upper_ratio(problem: Problem, true: Asked, ends: tuple[float, float] | None) -> float:
    """Return an answer's upper end, or with only a lower one its inverse, relative to the computed one."""
    if ends is None:
        return math.inf
    lower, upper = ends
    if true.upper < problem.largest:
        return upper / true.upper if true.upper > 0.0 else 1.0
    return true.lower / lower if lower > 0.0 else math.inf
