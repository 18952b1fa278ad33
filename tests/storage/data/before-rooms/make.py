"""Makes the store beside this file; run once, by the commit before the packages were divided into rooms.

    python tests/storage/data/before-rooms/make.py

The store never changes: tests/flows/runs/test_kept_store.py holds every later commit to it. The host is not
kept, so that the store does not name a machine.
"""

import json
import platform
import random
import shutil
import socket
import sys
import tarfile
from pathlib import Path
from typing import Any

from flows.cli import run  # where it was then
from privcore import METHODS, PROBLEMS, Method, Problem, find_problem
from storage import open_store
from tests.privcore.draws import draw_problem, draw_value

HERE = Path(__file__).resolve().parent
SWEEP = HERE / "every-problem.toml"
STORE = HERE / "store"
PATIENCE = (0.5, 2.0, 8.0)
"""A method takes part if it declares at most this many seconds a problem; the next counts if none does."""


def shown(value: Any) -> str:
    """Return a value as TOML."""
    return json.dumps(value) if isinstance(value, str) else repr(value)


def applicable(kind: type[Problem], problems: list[Problem], patience: float) -> list[Method]:
    """Return the methods that are cheap here and apply to a problem, also with changed knobs."""
    rng = random.Random(kind.name)
    chosen: list[Method] = []
    for method in METHODS:
        if kind not in method.problems:
            continue
        knobs = {name: draw_value(knob, rng, wild=False) for name, knob in method.knobs.items()}
        for candidate in dict.fromkeys((method(), method.from_knobs(knobs))):
            costs = [candidate.cost(problem).seconds for problem in problems]
            if max(costs) <= patience and any(candidate.applies(problem) is None for problem in problems):
                chosen.append(candidate)
    return chosen


def grid(kind: type[Problem]) -> str:
    """Return a grid with three problems of a kind: of many draws, those to which most cheap methods apply."""
    rng = random.Random(kind.name)
    draws = [[draw_problem(kind, rng, wild=wild) for wild in (0.0, 0.0, 0.5)] for _ in range(40)]
    for patience in PATIENCE:
        problems = max(draws, key=lambda drawn: len(applicable(kind, drawn, patience)))
        if methods := applicable(kind, problems, patience):
            break
    if len(kind.parameters) == 1:
        problems = problems[:1]  # this release cannot look up a problem of one field that is stored twice
    lines = ["[[grid]]", f'problem = "{kind.name}"', "methods = ["]
    for method in methods:
        knobs = "".join(f", {name} = {shown(value)}" for name, value in method.identity().items())
        lines.append(f'    {{ name = "{method.name}"{knobs} }},')
    lines += ["]", "", "[grid.zip]"]
    for name in kind.parameters:
        values = ", ".join(shown(problem.as_fields()[name]) for problem in problems)
        lines.append(f"{name} = [{values}]")
    return "\n".join(lines)


def points() -> list[dict[str, Any]]:
    """Return every stored point by what its id stands for."""
    found = []
    with open_store(STORE) as store:
        for kind in PROBLEMS:
            view = kind.name.replace("-", "_")
            names = ", ".join(f'"{name}"' for name in kind.parameters)
            query = f'select point_id, method, knobs, {names} from "{view}" order by point_id'
            for row in store.sql(query).to_pylist():
                point_id, method, knobs = row.pop("point_id"), row.pop("method"), row.pop("knobs")
                found.append(
                    {
                        "id": point_id,
                        "problem": kind.name,
                        "fields": row,
                        "method": method,
                        "knobs": json.loads(knobs or "{}"),
                    }
                )
    return found


def questions(stored: list[dict[str, Any]]) -> list[Problem]:
    """Return problems on the grid, and between and beyond its values, two or three of each kind."""
    rng = random.Random(0)
    chosen = []
    for kind in PROBLEMS:
        fields = [point["fields"] for point in stored if point["problem"] == kind.name]
        given = rng.choice(fields)
        chosen.append(find_problem(kind.name).from_fields(given))
        for name in rng.sample(sorted(kind.monotone), min(2, len(kind.monotone))):
            for factor in (1.01, 0.99):
                try:
                    value = given[name] * factor
                    value = round(value) if isinstance(given[name], int) else value
                    chosen.append(kind.from_fields(given | {name: value}))
                    break
                except ValueError:  # outside the domain
                    continue
    return list(dict.fromkeys(chosen))


def answers(problems: list[Problem]) -> list[dict[str, Any]]:
    """Return the lookups of these problems in the store, to the bit."""
    found = []
    with open_store(STORE) as store:
        for problem in problems:
            said = store.lookup(problem)
            content: dict[str, Any] = {"problem": problem.name, "fields": problem.as_fields(), "found": None}
            if said is not None:
                content["found"] = {
                    "lower": said.lower.hex(),
                    "upper": said.upper.hex(),
                    "exact": said.exact,
                    "lower_from": said.lower_from,
                    "upper_from": said.upper_from,
                    "lower_method": said.lower_method,
                    "upper_method": said.upper_method,
                }
            found.append(content)
    return found


def written(name: str, content: list[dict[str, Any]]) -> None:
    """Write a list as JSON, one entry a line."""
    lines = ",\n".join(json.dumps(entry) for entry in content)
    (HERE / name).write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    socket.gethostname = platform.node = lambda: "kept"  # type: ignore[assignment]
    head = '# Every problem, by the methods that are cheap; written by make.py.\n\nname = "every-problem"\n'
    SWEEP.write_text("\n\n".join([head, *map(grid, PROBLEMS)]) + "\n")
    for sweep in ("quickstart", str(SWEEP)):
        code = run(["run", sweep, "--store", str(STORE), "--engine", "serial"])
        print(sweep, "ended with", code, file=sys.stderr)
    stored = points()
    written("points.json", stored)
    written("lookups.json", answers(questions(stored)))
    (STORE / "store.sql").unlink()  # it and the cache are written again
    shutil.rmtree(STORE / "cache")
    with tarfile.open(HERE / "store.tar.xz", "w:xz", preset=9) as archive:
        archive.add(
            STORE, "store", filter=lambda entry: entry.replace(uid=0, gid=0, uname="", gname="", deep=False)
        )
    shutil.rmtree(STORE)
    shutil.rmtree(HERE / ".prefect", ignore_errors=True)
