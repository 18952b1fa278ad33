"""Words that a shell can complete: problems, methods and sweeps. Nothing of ours is imported for it.

Names are read out of the source, since importing the registry takes longer than people wait for a key.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_NAME = re.compile(r'^    name = "([a-z0-9.-]+)"$', re.MULTILINE)

Completer = Callable[[str], list[str]]


def problems(incomplete: str) -> list[str]:
    """Return the names of problems that begin so."""
    return _beginning(incomplete, (name for name in _declared() if "." not in name))


def methods(incomplete: str) -> list[str]:
    """Return the names of methods that begin so."""
    return _beginning(incomplete, (name for name in _declared() if "." in name))


def problems_and_methods(incomplete: str) -> list[str]:
    """Return the names of problems and methods that begin so."""
    return _beginning(incomplete, iter(_declared()))


def sweeps(incomplete: str) -> list[str]:
    """Return the names of embedded sweeps that begin so; files are completed by the shell."""
    return _beginning(incomplete, (path.stem for path in _folder("flows").glob("sweeps/*.toml")))


def problems_and_sweeps(incomplete: str) -> list[str]:
    """Return the names of problems and embedded sweeps that begin so."""
    return sorted(problems(incomplete) + sweeps(incomplete))


def words(*choices: str) -> Completer:
    """Return the completer for an option that takes one of these words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in choices if word.startswith(incomplete)]

    return complete


def _beginning(incomplete: str, names: Iterator[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


@cache
def _declared() -> tuple[str, ...]:
    """Return the names that problems and methods declare."""
    files = _folder("privcore").glob("*/**/*.py")
    return tuple(name for path in files for name in _NAME.findall(path.read_text(encoding="utf-8")))


def _folder(package: str) -> Path:
    """Return where a package lies, without importing it."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])
