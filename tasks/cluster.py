"""Ray: its address, started on this machine for one run and stopped after it, or joined and left."""

import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from privcore.errors import DomainError
from tasks.errors import EngineError, SetupError
from tasks.own_process import folders, own_folders, script_folder

SECONDS = 5.0  # time for a cluster to accept a connection
VARIABLE = "RAY_ADDRESS"
OPTION = "--ray-address"


@dataclass(frozen=True)
class Address:
    """The address of a cluster, and the option or variable that gave it."""

    text: str
    source: str

    def __str__(self) -> str:
        """Return the address as it was given: `RAY_ADDRESS=host:port` or `--ray-address host:port`."""
        return f"{self.source}{'=' if self.source == VARIABLE else ' '}{self.text}"


def named_cluster(option: str | None = None) -> Address | None:
    """Return the address of the named cluster, or None if Ray is to be started on this machine.

    Args:
        option: Address from the caller, which overrides RAY_ADDRESS; `local` means this machine.
    """
    address = Address(option, OPTION) if option else Address(os.environ.get(VARIABLE, ""), VARIABLE)
    return None if address.text in ("", "local") else address


def checked(address: Address) -> Address:
    """Return the address if it accepts connections.

    Raises:
        DomainError: The address is invalid.
        EngineError: The address does not accept connections.
    """
    try:
        reason = why_unreachable(address.text)
    except DomainError as error:
        raise DomainError(f"Expected host:port of a Ray cluster, got {address}: {error}.") from error
    if reason:
        raise EngineError(f"Cannot reach a Ray cluster at {address}: {reason}.")
    return address


def why_unreachable(address: str) -> str | None:
    """Return the reason why an address is unreachable, or None if it accepts connections.

    Args:
        address: `host:port`, or `auto`, which is left to Ray and gives None.

    Raises:
        DomainError: The address is invalid.

    Example:
        >>> why_unreachable("here")
        Traceback (most recent call last):
        privcore.errors.DomainError: the port is missing
    """
    if address == "auto":
        return None
    if address.startswith("ray://"):
        raise DomainError(
            "it is an address of Ray Client; run privsweep on a node of the cluster and give its host:port"
        )
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise DomainError("the port is invalid") from None
    if not host or not port:
        raise DomainError("the port is missing" if host else "the host is missing")
    return why_refused(host, port)


def why_refused(host: str, port: int) -> str | None:
    """Return the reason why a port refuses connections, or None if it accepts them."""
    try:
        socket.create_connection((host, port), timeout=SECONDS).close()
    except (OSError, UnicodeError) as error:
        return (isinstance(error, OSError) and error.strerror) or "no answer"
    return None


LOOPBACK = "127.0.0.1", "localhost", "::1"


def bypass_proxies(address: Address | None) -> None:
    """Make this process and its children reach the loopback interface and a cluster without a proxy."""
    host = urlsplit(f"//{address.text.rpartition('//')[2]}").hostname if address else None
    given = os.environ.get("no_proxy") or os.environ.get("NO_PROXY", "")
    direct = dict.fromkeys([*filter(None, given.split(",")), *LOOPBACK, *([host] if host else [])])
    # Programs read one of the two; if both are set, most read the first.
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(direct)


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

    with _signals_wait():
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
    from ray.exceptions import AuthenticationError

    try:
        yield
    except (AuthenticationError, ConnectionError) as error:
        if "Could not find any running Ray instance" in str(error):  # at the address `auto`
            raise EngineError(
                f"{beginning}: no Ray runs on this machine; start it, or give the host:port of its head."
            ) from error
        # The port accepts connections, as was checked. A wrong token raises one of several errors.
        raise SetupError(
            f"{beginning}: it refused the token, or is not a Ray head; set RAY_AUTH_MODE=token and "
            "RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH as on its nodes."
        ) from error
    except Exception as error:  # Ray raises this class itself if its first node does not start
        reason = " ".join((str(error) or repr(error)).split()).partition(". ")[0].rstrip(".")
        raise EngineError(f"{beginning}: {reason[:300]}.") from error


def _set_environment() -> None:
    """Set the variables that Ray reads when it is loaded; variables that the user has set stay."""
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
def _signals_wait() -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and SIGHUP wait until the end of the block, in which Ray starts.

    An interrupted `ray.init` leaves compiled code behind that crashes at the end of the process, and so does
    its own handler of SIGTERM, which is not installed. Its processes ignore Ctrl-C, and inherit that SIGHUP
    is blocked, which a closed terminal sends to them, too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    stops = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in stops}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: came.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    install = signal.signal
    signal.signal = lambda *_: None
    try:
        yield
    finally:
        signal.signal = install
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
