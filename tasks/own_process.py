"""Python processes of our own: with our packages alone, and an end when their parent ends.

Python puts the working folder first on the path of `python -c`, and Ray puts it first on the path of its
workers. A file `tasks.py` or `numpy.py` there would be loaded in the place of a package. Our packages come
first instead, without the working folder; the folder of a user's script comes after them, since methods that
the user defines must be found.
"""

import ctypes
import os
import signal
import site
import sys
import threading
import time
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


EVERY = 0.5
"""Seconds between two looks at the parent, on systems that do not report its end."""

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Make the kernel kill this process when its parent ends, also by SIGKILL.

    The signal depends on the thread that started this process, which must live as long as the process. Only
    Linux has it; elsewhere a thread looks after the parent, and compiled code may delay it.

    Args:
        parent: Process id of the parent, which may have ended already.
    """
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    except AttributeError:
        threading.Thread(target=_end_after, args=(parent,), name="parent", daemon=True).start()
    if os.getppid() != parent:
        os._exit(1)


def _end_after(parent: int) -> None:
    wait_for_end(parent)
    os._exit(1)


def wait_for_end(parent: int) -> None:
    """Wait until the parent of this process has ended; then the process has another parent."""
    while os.getppid() == parent:
        time.sleep(EVERY)
