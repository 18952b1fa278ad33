"""The address of a Ray cluster: refused at once if it is unreachable, otherwise left to Ray."""

import os
import socket
from collections.abc import Iterator
from importlib.metadata import files
from pathlib import Path

import pytest

from privcore.errors import DomainError
from storage.place.located import located
from tasks.cluster import Address, _sentences, bypass_proxies, checked, named_cluster, why_unreachable
from tasks.engine import Engine, cores
from tasks.errors import EngineError
from tasks.guard import Limits
from tasks.work import Job


@pytest.fixture
def port() -> Iterator[socket.socket]:
    """A port that is ours and refuses connections until it listens."""
    with socket.socket() as ours:
        ours.bind(("127.0.0.1", 0))
        yield ours


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("here", "the port is missing"),
        ("here:", "the port is missing"),
        ("ray://here:10001", "it is an address of Ray Client; run privsweep on a node of the cluster"),
        (":6379", "the host is missing"),
        ("here:99999", "the port is invalid"),
        ("here:port", "the port is invalid"),
        ("[::1", "the port is invalid"),
    ],
)
def test_an_address_at_which_no_cluster_can_ever_be_is_misuse(address: str, reason: str) -> None:
    expected = rf"^Expected host:port of a Ray cluster, got --ray-address .*: {reason}.*\.$"
    with pytest.raises(DomainError, match=expected):
        checked(Address(address, "--ray-address"))


@pytest.mark.parametrize(
    ("given", "address", "direct"),
    [
        ({"NO_PROXY": "example.org"}, "10.0.0.7:6379", "example.org,127.0.0.1,localhost,::1,10.0.0.7"),
        ({"no_proxy": "localhost,a", "NO_PROXY": "b"}, None, "localhost,a,127.0.0.1,::1"),
        ({}, "[fd00::7]:6379", "127.0.0.1,localhost,::1,fd00::7"),
    ],
)
def test_loopback_and_the_cluster_bypass_a_proxy_besides_what_the_user_names(
    given: dict[str, str], address: str | None, direct: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, given.get(name, ""))
    bypass_proxies(Address(address, "--ray-address") if address else None)
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"] == direct


def test_a_host_that_nobody_knows_does_not_answer() -> None:
    assert why_unreachable(f"{'x' * 70}.example:6379") == "no answer"


def test_a_port_is_reachable_as_soon_as_somebody_listens(port: socket.socket) -> None:
    address = f"127.0.0.1:{port.getsockname()[1]}"
    assert why_unreachable(address) == "Connection refused"
    port.listen()
    assert why_unreachable(address) is None


def test_finding_a_cluster_by_itself_is_left_to_ray() -> None:
    assert why_unreachable("auto") is None


@pytest.mark.parametrize(
    ("value", "option", "named"),
    [
        (None, None, "None"),
        ("", None, "None"),
        ("local", None, "None"),
        ("auto", None, "RAY_ADDRESS=auto"),
        ("a:1", None, "RAY_ADDRESS=a:1"),
        ("a:1", "b:2", "--ray-address b:2"),
        ("a:1", "local", "None"),
        (None, "b:2", "--ray-address b:2"),
    ],
)
def test_ray_is_started_here_unless_a_cluster_is_named_and_the_option_wins(
    value: str | None, option: str | None, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is not None:
        monkeypatch.setenv("RAY_ADDRESS", value)
    assert str(named_cluster(option)) == named


def test_the_address_auto_without_a_cluster_is_named_and_no_token() -> None:
    """Ray would also find the clusters of other tests, so its error is raised here, in its own words."""
    (source,) = [file for file in files("ray") or () if str(file) == "ray/_private/services.py"]
    said = "Could not find any running Ray instance"
    assert f'"{said}' in source.read_text()
    beginning = "The Ray cluster at RAY_ADDRESS=auto cannot be joined"
    with pytest.raises(EngineError) as caught, _sentences(beginning):
        raise ConnectionError(f"{said}. Please specify the one to connect to by setting `--address` flag.")
    assert str(caught.value) == (
        f"{beginning}: no Ray runs on this machine; start it, or give the host:port of its head."
    )
    assert caught.value.exit_code == 5, "an outage, and no misuse"


def test_a_dead_cluster_is_refused_before_the_first_batch_is_asked_for(
    port: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, store = Job(sweep="none", limits=Limits()), located(tmp_path / "store")
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port.getsockname()[1]}")
    with pytest.raises(EngineError, match=r"RAY_ADDRESS=127\.0\.0\.1:\d+: Connection refused\."):
        Engine(name="ray").outcomes([], job, store)
    with pytest.raises(EngineError, match=r"Connection refused\.") as refused:
        Engine(name="ray").processors()
    assert refused.value.exit_code == 5, "an outage, and no misuse"
    assert list(Engine(name="serial").outcomes([], job, store)) == [], "which needs no cluster"
    assert Engine(name="serial").processors() == Engine(name="ray", address="local").processors() == cores()
