"""Python processes of our own, which import no file of the working folder in the place of a package.

Python puts the working folder first on the path of `python -c`, and Ray puts it first on the path of its
workers. A file `tasks.py` or `numpy.py` there would be imported in the place of a package. Our packages come
first instead, without the working folder; the folder of a user's script comes after them, since methods that
the user defines must be found.
"""

import os
import site
import sys
from collections.abc import Iterable
from pathlib import Path

import privcore
import storage
import tasks

_EXTEND = "from tasks.own_process import extend_path; extend_path({folders!r})"


def command(code: str) -> list[str]:
    """Return the command that runs Python code in a process of our own.

    Args:
        code: The code; it may import our packages.
    """
    return [sys.executable, "-P", "-c", f"{_EXTEND.format(folders=users_folders())}; {code}"]


def extend_path(folders: Iterable[str]) -> None:
    """Add folders at the end of the path of this process, unless it has them."""
    sys.path.extend(folder for folder in folders if folder not in sys.path)


def environment() -> dict[str, str]:
    """Return the environment of such a process: its own children have a safe path, too.

    Every process has the folders of installed packages, and has them after the standard library.
    """
    needed = [folder for folder in own_folders() if folder not in site.getsitepackages()]
    path = [*needed, os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(filter(None, path))}


def folders() -> list[Path]:
    """Return the folders of the packages that workers need."""
    return [Path(package.__path__[0]) for package in (privcore, storage, tasks)]


def own_folders() -> list[str]:
    """Return the folders that hold our packages."""
    return list(dict.fromkeys(str(folder.parent) for folder in folders()))


def script_folder() -> str:
    """Return the folder of the script that runs, which may define methods; else that of the interpreter."""
    script = os.path.dirname(os.path.realpath(sys.argv[0] or "."))  # noqa: PTH120  as Ray computes it
    return script if script in sys.path else str(Path(sys.executable).parent)


def users_folders() -> list[str]:
    """Return the folders of our path that a new process may lack, such as that of the user's script."""
    given = [folder for folder in sys.path if folder and Path(folder).is_absolute()]
    return [folder for folder in dict.fromkeys(given) if folder not in own_folders()]
