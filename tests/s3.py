"""A real S3 server on loopback, in a process of its own that ends with the tests; as fixtures."""

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()  # until the tests end, for any reason
server.stop()
"""

_numbers = itertools.count()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The endpoint of a server, which the environment names from then on."""
    from storage.place.server import _connected

    process = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    endpoint = f"http://127.0.0.1:{int(process.stdout.readline())}"
    named = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": "something",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in named.items():
            patch.setenv(name, value)
        _connected.cache_clear()  # an earlier test may have connected without credentials
        yield endpoint
    process.stdin.close()
    process.wait(30)
    process.stdout.close()


@pytest.fixture
def bucket(s3_server: str) -> str:
    """The name of a new, empty bucket."""
    from storage.place.server import connected

    name = f"bucket-{os.getpid()}-{next(_numbers)}"
    connected("").mkdir(name)
    return name


@pytest.fixture
def address(bucket: str) -> str:
    """Address of a store in an empty bucket."""
    return f"s3://{bucket}/some/store"


def keys(address: str) -> list[str]:
    """Return the names of all objects below an address, sorted."""
    from storage.place.server import connected

    top = address.removeprefix("s3://")
    return sorted(key[len(top) + 1 :] for key in connected("").find(top))


def elsewhere(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Go to another machine: none of the mirrors is there."""
    monkeypatch.setenv("PRIVSWEEP_CACHE", str(folder))
    assert re.fullmatch(r"/.+", str(folder))
