"""Plain DuckDB on a store's folder, in a process that cannot import this package."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_PROGRAM = """
import importlib.util, json, pathlib, sys
sys.path = [p for p in sys.path if not (pathlib.Path(p or ".") / "privcore").exists()]
assert importlib.util.find_spec("storage") is None
import duckdb
connection = duckdb.connect()
connection.execute("set enable_progress_bar = false")
answers = []
try:
    connection.execute(pathlib.Path("store.sql").read_text())
    for query in json.load(sys.stdin):
        answers.append([list(map(str, row)) for row in connection.execute(query).fetchall()])
except duckdb.Error as error:
    answers = str(error).splitlines()[0]
json.dump(answers, sys.stdout)
"""


def plainly(root: Path, *queries: str) -> Any:
    """Return the rows of each query as texts, or the first line of DuckDB's error."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", _PROGRAM],
        cwd=root,
        input=json.dumps(queries),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)
