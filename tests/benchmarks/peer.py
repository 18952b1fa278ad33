"""Peers in separate processes, which serve several questions, are ended at a limit, and start again."""

import json
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.measure import REPEATS, Measured
from tests.benchmarks.peer_server import ANSWER

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-peers" / "bin" / "python"


class PeerError(Exception):
    """A peer gave no answer; the message is the reason, as a cell of a table."""


@dataclass
class Peer:
    """The functions of one script of this folder, run by the interpreter of the peers.

    Attributes:
        script: Such as `peer_allocation.py`; it calls `serve`.
    """

    script: str
    process: "subprocess.Popen[str] | None" = None

    def ask(self, function: str, limit: float, runs: int = REPEATS, **arguments: Any) -> Measured:
        """Return the value of a function of the peer, with its time and memory.

        Args:
            function: Name of the function in the script's table.
            limit: Seconds of processor time for one run, after which the process is ended.
            runs: Number of runs if a run is quick.
            **arguments: Arguments of the function.

        Raises:
            PeerError: The limit was reached, or the peer refused or crashed.
        """
        if self.process is None or self.process.poll() is not None:
            self.process = self._start()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        question = {"function": function, "limit": limit, "runs": runs, "arguments": arguments}
        print(json.dumps(question), file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            if line.startswith(ANSWER):
                found = json.loads(line.removeprefix(ANSWER))
                if "error" in found:
                    raise PeerError(found["error"])
                return Measured(**found)
        code = self.process.wait()
        raise PeerError(f"> {limit:g} s" if code == -signal.SIGXCPU else f"ended with code {code}")

    def _start(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [str(PYTHON), "-W", "ignore", str(Path(__file__).with_name(self.script))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
