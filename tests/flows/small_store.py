"""A small store with given points, and the command line run in this process."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from flows.cli import app as cli
from privcore import Point, evaluate, find, find_problem
from storage import Row, open_store, publish, to_table
from storage.place.located import located

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def point(problem: str, method: str, **fields: Any) -> Point:
    """Return a point by names."""
    return Point(problem=find_problem(problem).from_fields(fields), method=find(method)())


def store_of(root: Path, points: Sequence[Point]) -> Path:
    """Return a new store with the answers to these points, as if the sweep `small` had run at `WHEN`."""
    with open_store(root, create=True):
        for each in points:
            row = Row(
                point=each,
                answer=evaluate(each),
                seconds=0.001,
                cpu_seconds=0.001,
                attempt=1,
                finished_at=WHEN,
                sweep="small",
            )
            publish(located(root), to_table([row]))
    return root


class Command:
    """Runs `privsweep` in this process and keeps its output."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.out = self.err = ""

    def __call__(self, *words: object) -> int:
        """Run one command line; return its exit code."""
        code = cli.run([str(word) for word in words])
        self.out, self.err = self.capsys.readouterr()
        return code

    def told(self, *words: object, code: int = 0) -> Any:
        """Return the JSON of one command line, which ends with this code."""
        assert self(*words, "--json") == code, self.err
        return self.json

    @property
    def json(self) -> Any:
        """The output, as strict JSON."""
        return json.loads(self.out, parse_constant=pytest.fail)
