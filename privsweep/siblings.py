"""The packages installed with this one, also if a file of the user has the name of one of them.

They have short names, `flows`, `tasks`, `storage` and `privcore`. Python finds a script's own files first, so
without this module a file `storage.py` next to a script would be taken for our package.
"""

import sys
import warnings
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

NAMES = ("flows", "privcore", "storage", "tasks")
HOME = Path(__file__).resolve().parent.parent


class _Finder(MetaPathFinder):
    """A finder of the four packages, in the folder of this one."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the place of one of the four packages; None for other modules."""
        return PathFinder.find_spec(name, [str(HOME)], target) if path is None and name in NAMES else None


def find() -> None:
    """Make `import storage`, and so on, mean our packages in this process.

    Raises:
        ImportError: A module of the user with such a name is imported already.
    """
    for name in NAMES:
        if (file := _other(getattr(sys.modules.get(name), "__spec__", None))) is not None:
            raise ImportError(
                f"Expected our package {name}, but {file} is imported under that name: rename it."
            )
    for name in NAMES if sys.argv[:1] != ["-m"] else ():  # `python -m privsweep` drops the working folder
        if (file := _other(PathFinder.find_spec(name))) is not None:
            warnings.warn(
                f"{file} has the name of a package of privsweep: `import {name}` means that package from "
                "now on; rename the file to import it.",
                stacklevel=3,
            )
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _other(spec: ModuleSpec | None) -> str | None:
    """Return the file or folder of a module, unless it is missing or one of ours."""
    if spec is None:
        return None
    places = [spec.origin] if spec.origin else list(spec.submodule_search_locations or [])
    other = [place for place in places if not Path(place).resolve().is_relative_to(HOME)]
    return other[0] if other else None
