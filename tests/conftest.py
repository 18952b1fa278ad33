"""Settings of every test: no account, server or folder of the user is touched."""

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.s3 import address, bucket, s3_server

__all__ = ["address", "bucket", "s3_server"]  # in one place: each import of a fixture is a fixture of its own

# One folder a process (pytest-xdist starts several). Its name is short: Ray puts sockets below it, and the
# path of a socket must not exceed 107 characters.
_SCRATCH = Path(tempfile.mkdtemp(prefix="ps-"))

# Set before anything imports prefect or ray: both read the environment when they are imported.
os.environ.update(
    {
        "OPENBLAS_NUM_THREADS": "1",  # read by numpy; sums of dp-accounting have other last bits on two
        "PREFECT_HOME": str(_SCRATCH / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",  # 20 s is too short on a busy machine
        "DO_NOT_TRACK": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # else workers start in a copy of the working directory
        "RAY_AUTH_MODE": "disabled",  # else the first ray.init writes a token into the home directory
        "RAY_TMPDIR": str(_SCRATCH),
        "MPLCONFIGDIR": str(_SCRATCH / "matplotlib"),
        "PRIVSWEEP_CACHE": str(_SCRATCH / "buckets"),
        "PRIVSWEEP_TABLE": "none",  # tests of the shipped table name it
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
)
for _name in ("PREFECT_API_URL", "PREFECT_API_KEY", "PREFECT_PROFILE", "RAY_ADDRESS", "AWS_PROFILE"):
    os.environ.pop(_name, None)

os.umask(0o022)  # a cache into which the group can write is not used
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in background processes

# Draws are a function of the test alone, so that a commit never fails by chance; `make soak` draws new ones.
settings.register_profile(
    "suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("sample", settings.get_profile("suite"), max_examples=25)
settings.register_profile("soak", settings.get_profile("suite"), derandomize=False, max_examples=2000)

# Scripts, not tests: the first are run by `make bench`, the second by tests of flows, on a path of their own;
# the third were run once, by the releases whose stores are kept.
collect_ignore_glob = ["benchmarks/*.py", "flows/support/*.py", "storage/data/*/*.py"]


def pytest_configure(config: pytest.Config) -> None:
    soak = config.getoption("-m") == "soak"
    settings.load_profile("soak" if soak else "sample" if config.option.suite == "sample" else "suite")


def pytest_unconfigure() -> None:
    shutil.rmtree(_SCRATCH, ignore_errors=True)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return Path(__file__).resolve().parents[1]
