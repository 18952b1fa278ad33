"""The page asked as practitioners ask, compared with computed brackets; part of the section page."""

import json
import math
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flows.answers.held import WIDE
from tests.benchmarks.lookups import OTHERS, QUESTIONS, TRAINING, drawn, true_bracket, upper_ratio
from tests.benchmarks.measure import head, row, verdict
from tests.flows.page.browser import call, chromium, visit, wait

ASK = """
    const [{ open }, { lookup, stated }, { narrow, tolerance }, { compute }, { covers }, { ask }] =
        await Promise.all(["table/source.js", "table/lookup.js", "table/computed.js", "engine/client.js",
                           "engine/questions.js", "table/source.js"].map(load));
    const { catalogue, table } = await open();
    const decoded = (end) => (end === "inf" ? Infinity : end);
    const coded = (end) => (end === Infinity ? "inf" : end);
    const ends = (known) => (known ? [coded(known.lower), coded(known.upper)] : null);
    const found = [];
    for (const [problem, fields] of given) {
        const entries = Object.entries(fields).map(([name, value]) => [name, decoded(value)]);
        const question = Object.fromEntries(entries);
        const began = performance.now();
        let known = null;
        if (catalogue.problems[problem]) {
            const stored = await table(problem);
            known = lookup(stored, question) ?? stated(stored, question)[0] ?? null;
        }
        if (!narrow(known, problem) && covers(problem, question)) {
            known = await compute({ problem, fields: question, tolerance: tolerance(problem) });
        }
        const seconds = (performance.now() - began) / 1000;
        const alone = ends(known);
        if (!narrow(known, problem)) {
            const { lower, upper, status } = await ask(catalogue.live, { name: problem }, question);
            if (status === "ok") known = { lower: decoded(lower), upper: decoded(upper) };
        }
        found.push([alone, ends(known), seconds]);
    }
    return JSON.stringify(found);
"""
"""Asks as the page does: a stored bracket, a computed one if that is wide, and the button of `serve`."""

Ends = tuple[float, float] | None


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Start `privsweep serve` over the shipped table; give its address."""
    command = [sys.executable, "-m", "flows.cli", "serve", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:  # no store here
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.send_signal(signal.SIGTERM)


def answers() -> list[tuple[Ends, Ends, float]]:
    """Return for each question the ends of the static and the served page, and seconds of the first."""
    questions = [[problem.name, problem.as_fields()] for _, problem in drawn()]
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with served(folder) as address, chromium(folder / "profile") as browser:
            visit(browser, f"{address}#problem=allocation-epsilon")
            wait(browser, "#number")
            for question in questions:
                asked = json.loads(json.dumps(question).replace("Infinity", '"inf"'))
                found += json.loads(call(browser, ASK, asked))
    return [(_ends(alone), _ends(live), seconds) for alone, live, seconds in found]


def _ends(found: list[float | str] | None) -> Ends:
    return None if found is None else (float(found[0]), float(found[1]))


def table() -> Iterator[str]:
    """Yield how close the page comes to computed brackets, by topic."""
    yield f"{QUESTIONS} drawn questions, the same as those about lookups, over the shipped table:"
    yield ""
    yield head(
        [
            "topic",
            "questions",
            "answered",
            "worst",
            "within 5 %",
            "seconds, median",
            "worst",
            "served: within 5 %",
        ]
    )
    found = answers()
    tight = {"static": 0, "served": 0}
    for topic in (*TRAINING, *OTHERS):
        ratios: dict[str, list[float]] = {"static": [], "served": []}
        seconds = []
        for (name, problem), (alone, live, took) in zip(drawn(), found, strict=True):
            if name == topic:
                true = true_bracket(problem)
                ratios["static"].append(upper_ratio(problem, true, alone))
                ratios["served"].append(upper_ratio(problem, true, live))
                seconds.append(took)
        within = {way: sum(ratio <= 1.0 + WIDE for ratio in of) for way, of in ratios.items()}
        tight = {way: tight[way] + within[way] for way in tight}
        known = [ratio for ratio in ratios["static"] if ratio < math.inf]
        worst = f"{max(known):.3f}" if known else ""
        times = (f"{sorted(seconds)[len(seconds) // 2]:.3f}", f"{max(seconds):.2f}")
        yield row(
            [
                topic,
                str(len(seconds)),
                str(len(known)),
                worst,
                str(within["static"]),
                *times,
                str(within["served"]),
            ]
        )
    yield ""
    for way, count in tight.items():
        told = f"{count} of {QUESTIONS}"
        yield verdict(f"within 5 % of the computed bracket through the {way} page", told, count == QUESTIONS)
