"""A session with every command, run by one process, which is ten times as fast as one process for each."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PLAYER = """
import contextlib, io, json, sys
from flows.cli.app import run
for line in sys.stdin:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(json.loads(line))
    print(json.dumps([int(code), out.getvalue(), err.getvalue()]), flush=True)
"""
"""Runs the command of every line; a file, so that its own folder takes the place of the working folder."""

RUN = ["--sigma", "1", "--steps", "100", "--delta", "1e-6"]
QUESTION = ["unamplified-epsilon", "sigma=1", "delta=1e-5"]
AUDIT = ["--counts", "100", "50", "40", "--delta", "1e-5"]

SESSION = [
    ["plan", *QUESTION],
    ["run", *QUESTION],
    ["status"],
    ["schema"],
    ["epsilon", *RUN, "--sampling", "none"],
    ["noise", "--epsilon", "1", "--delta", "1e-5", "--sampling", "none"],
    ["profile", "--sigma", "1", "--steps", "1", "--delta", "1e-5", "--sampling", "none"],
    [
        "plot",
        "--sampling",
        "none",
        "--sigma",
        "1",
        "--steps",
        "1",
        "--delta",
        "1e-5",
        "--over",
        "sigma=1,2",
        "--out",
        "drawn.svg",
    ],
    ["solve", "epochs", "--epsilon", "1", "--sigma", "9", "--delta", "1e-5", "--sampling", "none"],
    ["steps", "--examples", "1000", "--batch-size", "100"],
    ["compare", *RUN, "--stored-only"],
    ["ask", *QUESTION],
    ["methods"],
    ["lookup", *QUESTION],
    ["sql", "select * from best"],
    ["export", "select * from best", "--out", "best.csv"],
    ["labels", "--bag-size", "2", "--prior", "point(0.5)"],
    ["audit", *AUDIT],
    ["membership", "--epsilon", "1", "--delta", "0", "--adjacency", "add-remove"],
    ["verify"],
    ["repair"],
    ["compact"],
    ["gc"],
    ["report", "sweep", "SWEEP"],
    ["report", "compare-training"],
    ["report", "compare-labels"],
    ["report", "compare-audits"],
    ["report", "compare-membership"],
    ["report", "figures", "labels", "--figure", "labels1"],
    ["figures", "labels", "--figure", "labels1"],
    ["table", "publish", "--out", "tables"],
    ["table", "show", "TABLE"],
    ["table", "import", "TABLE", "--store", "other"],
    ["table", "diff", "TABLE", "TABLE"],
    ["table", "remove", "VERSION", "--store", "other"],
    ["page", "build"],
    ["serve", "--port", "0"],
]
"""A session with every command; SWEEP, TABLE and VERSION are made on the way."""


def sweep_in(folder: Path) -> str:
    """Return the name of the first sweep of the session."""
    found = sorted((folder / "store").glob("sweeps/*.json"))
    return found[0].name.rpartition("-")[0] if found else ""


def table_in(folder: Path) -> str:
    """Return the table that the session has published."""
    return str(next((folder / "tables").glob("*.parquet"), ""))


def version_of(table: str) -> str:
    """Return the version of a published table, which is a part of its name."""
    return Path(table).stem.removeprefix("lookup-")


def played(
    folder: Path, player: Path, python: Path = Path(sys.executable), leave: tuple[str, ...] = ()
) -> Iterator[tuple[list[str], int, str, str]]:
    """Yield every command of the session with its exit code, standard output and standard error.

    Args:
        folder: The working folder, which gets the store.
        player: File to be written, in another folder.
        python: The interpreter.
        leave: Commands to leave out.
    """
    player.write_text(PLAYER)
    bare = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PREFECT_HOME"}}
    with subprocess.Popen(
        [str(python), str(player)],
        cwd=folder,
        env=bare,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for words in SESSION:
            if words[0] in leave:
                continue
            table = table_in(folder)
            made = {"SWEEP": sweep_in(folder), "TABLE": table, "VERSION": version_of(table)}
            print(json.dumps([made.get(word, word) for word in words]), file=process.stdin, flush=True)
            line = process.stdout.readline()
            assert line, (words, process.stderr.read())
            yield (words, *json.loads(line))
        process.stdin.close()
