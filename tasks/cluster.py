"""Ray: started on this machine for one run and stopped after it, or an existing cluster, joined and left."""

import logging
import os
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any

from tasks.address import Address
from tasks.errors import EngineError, SetupError
from tasks.own_process import folders, own_folders, script_folder
from tasks.ray_node import few_processes

OBJECT_STORE = (
    128 * 1024**2
)  # bytes; batches and summaries are small, and Ray's default is a third of the memory
LONGEST_BASE = 20  # characters: the path of a Ray socket, far below this folder, must not exceed 107
PREFIX = "psray-"
LOCK = "lock"
INNER = "r"
NOT_CODE = ["__pycache__", "*.pyc"]
_TOKEN = {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}


@contextmanager
def started_here(workers: int) -> Iterator[None]:
    """Run Ray on this machine during the block; it listens on the loopback interface only.

    Raises:
        EngineError: Ray did not start.
    """
    _set_environment()
    if "ray" not in sys.modules:
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # else on all interfaces
        if not _TOKEN & os.environ.keys():
            # A token for this run only: other users of the machine cannot use its cluster.
            os.environ["RAY_AUTH_MODE"] = "token"
            os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    with ExitStack() as stack:
        with _sentences("Ray did not start"):
            folder = stack.enter_context(own_folder())
            stack.callback(_leave)
            with few_processes():
                _init(
                    [script_folder(), *own_folders()],
                    address="local",
                    num_cpus=workers,
                    include_dashboard=False,
                    object_store_memory=OBJECT_STORE,
                    _temp_dir=str(folder),
                )
        yield


@contextmanager
def joined(address: Address) -> Iterator[None]:
    """Be a driver of a cluster during the block, in which `send_code` may be called.

    Raises:
        EngineError: The cluster cannot be joined: its token or its version of Ray differs.
    """
    _set_environment()
    if "ray" not in sys.modules:
        # One attempt of 40 s, not twenty, if the head accepts connections but does not answer.
        os.environ.setdefault("RAY_gcs_server_port_wait_time_s", "1")
    try:
        with _sentences(f"The Ray cluster at {address} cannot be joined"), _silence():
            _init([script_folder()], address=address.text)
        yield
    finally:
        _leave()


def processors(address: Address) -> int:
    """Return the number of free processors of a cluster, or of all its processors while every one is busy.

    Raises:
        EngineError: The cluster cannot be joined.
    """
    beginning = f"The Ray cluster at {address} cannot be used"
    with joined(address), _sentences(beginning):
        import ray

        free = int(ray.available_resources().get("CPU", 0))  # type: ignore[no-untyped-call]
        return free or int(ray.cluster_resources().get("CPU", 0))  # type: ignore[no-untyped-call]


def send_code(address: Address) -> None:
    """Join the cluster again, so that all workers of this run get the code of this process.

    Raises:
        EngineError: The cluster cannot be joined again.
    """
    _leave()
    with _sentences(f"The Ray cluster at {address} did not accept the code of this machine"), _silence():
        _init(
            [script_folder()],
            address=address.text,
            runtime_env={"py_modules": [str(folder) for folder in folders()], "excludes": NOT_CODE},
        )


def _init(path: list[str], **how: Any) -> None:
    import ray
    from ray.job_config import JobConfig

    with _own_sigterm():
        job = JobConfig(_py_driver_sys_path=_Path(path))
        ray.init(log_to_driver=False, logging_level=logging.ERROR, job_config=job, **how)


def _import() -> None:
    """Import Ray without its advice to install widgets for notebooks, which we do not use."""
    logging.getLogger("ray.widgets.util").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "IProgress not found")
        import ray  # noqa: F401


class _Path(list[str]):
    """Folders for the start of the path of Ray's workers, without the working folder, which Ray adds."""

    def extend(self, folders: Iterable[str]) -> None:
        """Add nothing."""


def _leave() -> None:
    """Disconnect from Ray, and stop it if `_init` started it."""
    import ray

    ray.shutdown()


@contextmanager
def _sentences(beginning: str) -> Iterator[None]:
    """Turn an error of Ray into an `EngineError` of one sentence."""
    _import()
    from ray.exceptions import AuthenticationError, RayError

    try:
        yield
    except (AuthenticationError, ConnectionError) as error:
        # The port accepts connections, as was checked. A wrong token raises one of several errors.
        raise SetupError(
            f"{beginning}: it refused the token, or is not a Ray head; set RAY_AUTH_MODE=token and "
            "RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH as on its nodes."
        ) from error
    except (OSError, RuntimeError, ValueError, RayError) as error:
        reason = " ".join((str(error) or repr(error)).split())
        raise EngineError(f"{beginning}: {reason[:300]}") from error


def _set_environment() -> None:
    """Set the variables that Ray reads when it is imported; variables that the user has set stay."""
    if "ray" in sys.modules:
        return  # too late: a change now would affect the workers but not this process
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")  # else workers start in a copy of the folder
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else Ray warns about GPUs


@contextmanager
def own_folder() -> Iterator[Path]:
    """Provide a folder for Ray's sockets and logs, and remove the folders of killed runs.

    No other user can reach it, although Ray opens the folder itself to everyone.

    The owner holds a lock in its folder, which the kernel releases when the owner ends. This works also for
    containers that share the parent folder but not their process ids.
    """
    base = Path(os.environ.get("RAY_TMPDIR", tempfile.gettempdir()))
    if len(str(base)) > LONGEST_BASE:
        base = Path("/tmp")
    for old in base.glob(f"{PREFIX}*"):
        with suppress(OSError):  # it is locked, or a link, or belongs to another user, or is gone
            _remove_abandoned(old)
    staged = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=base))
    with (staged / LOCK).open("w") as lock:
        flock(lock, LOCK_EX)
        folder = staged.rename(base / staged.name[1:])  # after locking: no other run finds it unlocked
        try:
            (folder / INNER).mkdir(mode=0o700)
            yield folder / INNER
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(folder: Path) -> None:
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        return
    # A folder gets its name after its lock, so one without a lock is the rest of a killed removal.
    if not (folder / LOCK).exists():
        shutil.rmtree(folder, ignore_errors=True)
        return
    with (folder / LOCK).open("r+") as lock:
        flock(lock, LOCK_EX | LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _silence() -> Iterator[None]:
    """Suppress the messages that Ray's compiled code writes to stderr, since errors are reported later."""
    sys.stderr.flush()
    ours = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)
        os.close(nowhere)


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Restore the handler of SIGTERM, which ray.init replaces by a handler that exits."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
