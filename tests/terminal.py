"""A terminal with a person in front of it: programs on a pseudo-terminal, and the screen that they leave.

Commands are run by one process that has imported all of them and forks for each, since the start of forty
interpreters takes longer than all that they do here.
"""

import fcntl
import json
import os
import pty
import re
import select
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.busy import stretched

ROWS = 50
PATIENCE = 120.0  # seconds
_PIECES = re.compile(
    r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b[=>]|\x1b\][^\x07]*\x07|([\r\n\a\b])|([^\x1b\r\n\a\b]+)"
)


class Screen:
    """The screen of a terminal on which the output of a program is played; nothing scrolls away.

    Attributes:
        columns: Width of the window.
        lines: Rows of the screen; nothing scrolls away.
        row: Row of the cursor.
        column: Column of the cursor; after the last character of a full row, it is the width.
        cursor: Whether the cursor is shown.
        too_wide: Rows that were written beyond the edge of the window.
        styles: Parameters of all changes of colour or weight.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.lines = [""]
        self.row = self.column = 0
        self.cursor = True
        self.too_wide: list[str] = []
        self.styles: set[str] = set()

    @property
    def broken(self) -> list[str]:
        """Rows beyond the edge, except a label and one word, such as a path, which must not be broken."""
        return [row for row in self.too_wide if len(row.rsplit(maxsplit=1)[-1]) < len(row) - 30]

    def write(self, text: str) -> None:
        """Play a text; raise `ValueError` for a control sequence that no program of ours should need."""
        place = 0
        while place < len(text):
            piece = _PIECES.match(text, place)
            if piece is None:
                raise ValueError(f"unknown control sequence: {text[place : place + 20]!r}")
            place = piece.end()
            parameters, letter, control, words = piece.groups()
            if words is not None:
                self._print(words)
            elif control is not None:
                self._control(control)
            elif letter is not None:
                self._sequence(parameters, letter)

    def _print(self, words: str) -> None:
        for character in words.expandtabs():
            if self.column == self.columns:  # the next character is on the next row
                self.too_wide.append(self.lines[self.row])
                self._down()
                self.column = 0
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + character + line[self.column + 1 :]
            self.column += 1

    def _control(self, control: str) -> None:
        if control == "\n":
            self._down()
        elif control == "\r":
            self.column = 0
        elif control == "\b":
            self.column = max(self.column - 1, 0)

    def _sequence(self, parameters: str, letter: str) -> None:
        number = int(parameters) if parameters.isdecimal() else 1
        match letter, parameters:
            case "m", _:
                self.styles.add(parameters)
            case "A", _:
                self.row = max(self.row - number, 0)
            case "K", "2":
                self.lines[self.row] = ""
            case "K", "" | "0":
                self.lines[self.row] = self.lines[self.row][: self.column]
            case "J", "" | "0":
                self.lines[self.row] = self.lines[self.row][: self.column]
                del self.lines[self.row + 1 :]
            case (("h" | "l"), "?25"):
                self.cursor = letter == "h"
            case (("h" | "l"), "?2004"):  # marks around pasted text, for a shell
                pass
            case _:
                raise ValueError(f"unknown control sequence: {parameters!r} {letter}")

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")

    def resize(self, columns: int) -> None:
        """Change the width; as most terminals do, rows that are too long are broken."""
        rows: list[str] = []
        row, column = self.row, self.column
        for number, line in enumerate(self.lines):
            if number == self.row:
                row, column = len(rows) + self.column // columns, self.column % columns
            parts = [line[at : at + columns] for at in range(0, max(len(line), 1), columns)]
            rows += parts
        self.columns, self.lines, self.row, self.column = columns, rows, row, column

    @property
    def text(self) -> str:
        """All that can be read."""
        return "\n".join(line.rstrip() for line in self.lines)

    @property
    def coloured(self) -> bool:
        """Whether anything had a colour."""
        numbers = {number for style in self.styles for number in style.split(";")}
        return any(number[:1] in {"3", "4", "9"} and len(number) > 1 for number in numbers)


@dataclass
class Terminal:
    """A window, and the program in it.

    Attributes:
        descriptor: The window's end of the pseudo-terminal.
        screen: What is seen in it.
    """

    descriptor: int
    screen: Screen
    _rest: bytes = field(default=b"", repr=False)

    def read(self, until: str = "", *, seconds: float = PATIENCE) -> str:
        """Read until words are seen, or, without words, until no program has the terminal open."""
        seconds = stretched(seconds)
        end = time.monotonic() + seconds
        while not (until and until in self.screen.text):
            assert time.monotonic() < end, f"waited {seconds} s for {until!r}: {self.screen.text}"
            if not select.select([self.descriptor], [], [], 0.2)[0]:
                continue
            try:
                block = os.read(self.descriptor, 65536)
            except OSError:  # Linux reports so that the other end is closed
                block = b""
            if not block:
                assert not until, f"the program ended before it showed {until!r}: {self.screen.text}"
                break
            self._play(block)
        return self.screen.text

    def read_for(self, seconds: float) -> None:
        """Read the output of some seconds."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.descriptor], [], [], left)[0]:
                self._play(os.read(self.descriptor, 65536))

    def _play(self, block: bytes) -> None:
        """Play a block of output; a character or a sequence that is cut short waits for the next block."""
        data = self._rest + block
        cut = re.search(rb"\x1b(\[[?0-9;]*)?$|[\xc0-\xff][\x80-\xbf]*$", data)
        whole = data
        if cut is not None:
            tail = data[cut.start() :]
            missing = tail[:1] == b"\x1b" or len(tail) < (2 if tail[0] < 0xE0 else 3 if tail[0] < 0xF0 else 4)
            whole = data[: cut.start()] if missing else data
        self._rest = data[len(whole) :]
        self.screen.write(whole.decode())

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.descriptor, keys)

    def resize(self, columns: int) -> None:
        """Change the width of the window, which sends SIGWINCH to the program."""
        set_size(self.descriptor, columns)
        self.screen.resize(columns)


def set_size(descriptor: int, columns: int) -> None:
    """Set the size of a window."""
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))


@contextmanager
def program(
    command: Sequence[str], folder: Path, *, columns: int = 80, environment: dict[str, str] | None = None
) -> Iterator[tuple[Terminal, "Ending"]]:
    """Run a program in a window of its own; it is killed at the end of the block."""
    variables = cleaned() | {"TERM": "xterm-256color"} | (environment or {})
    process, descriptor = pty.fork()
    if not process:
        try:
            os.chdir(folder)
            set_size(0, columns)
            os.execvpe(command[0], list(command), variables)
        finally:
            os._exit(127)
    ending = Ending(process)
    try:
        yield Terminal(descriptor, Screen(columns)), ending
    finally:
        ending.kill()
        os.close(descriptor)


class Ending:
    """The end of a program."""

    def __init__(self, process: int) -> None:
        self.process = process
        self._code: int | None = None

    @property
    def code(self) -> int:
        """Its exit code, once it has ended."""
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        return self._code

    def kill(self) -> None:
        """Kill the program and its children in this window, unless it has ended."""
        if self._code is None:
            os.killpg(self.process, 9)
            assert self.code


def cleaned() -> dict[str, str]:
    """The environment without the variables about widths and colours."""
    decisive = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "COLORTERM", "TERM", "PS1"}
    return {name: value for name, value in os.environ.items() if name not in decisive}


class Forks:
    """Runs `privsweep` on terminals, each command in a fork of one process that has imported all of them."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from tests.terminal import serve; serve({theirs.fileno()})"],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env=cleaned(),
            cwd=Path(__file__).resolve().parents[1],
        )
        theirs.close()

    def close(self) -> None:
        """End the process."""
        self._socket.close()
        assert self._process.wait(PATIENCE) == 0

    @contextmanager
    def started(
        self, words: Sequence[str], folder: Path, *, columns: int = 80, **environment: str
    ) -> Iterator[Terminal]:
        """Start a command on a terminal."""
        ours, theirs = os.openpty()
        try:
            set_size(theirs, columns)
            variables = {"TERM": "xterm-256color"} | environment
            request = json.dumps([list(words), str(folder), variables]).encode()
            socket.send_fds(self._socket, [request], [theirs])
        finally:
            os.close(theirs)
        try:
            yield Terminal(ours, Screen(columns))
        finally:
            os.close(ours)

    def code(self) -> int:
        """The exit code of the command that was started."""
        return int(self._socket.recv(100))

    def run(
        self, words: Sequence[str], folder: Path, *, columns: int = 80, **environment: str
    ) -> tuple[int, Screen]:
        """Run a command to its end; return its exit code and the screen."""
        with self.started(words, folder, columns=columns, **environment) as terminal:
            terminal.read()
            return self.code(), terminal.screen


def serve(descriptor: int) -> None:
    """Fork for each request that arrives, and answer with the exit code."""
    from importlib import import_module

    from flows.cli.app import COMMANDS, main

    for module in {place.partition(":")[0] for place, _ in COMMANDS.values()}:
        import_module(f"flows.cli.{module}")
    for module in ("storage", "rich.console", "matplotlib.figure", "flows.answers.training.compare"):
        import_module(module)
    connection = socket.socket(fileno=descriptor)
    while True:
        request, descriptors, _, _ = socket.recv_fds(connection, 65536, 1)
        if not request:
            return
        words, folder, variables = json.loads(request)
        process = os.fork()
        if not process:
            os.setsid()
            fcntl.ioctl(descriptors[0], termios.TIOCSCTTY, 0)
            for standard in range(3):
                os.dup2(descriptors[0], standard)
            os.close(descriptors[0])
            connection.close()
            os.chdir(folder)
            os.environ.update(variables)
            sys.argv = ["privsweep", *words]
            sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
            main()
        os.close(descriptors[0])
        connection.send(str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])).encode())
