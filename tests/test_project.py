"""The frame of the project: what is installed, what is locked, and that a schedule really fires."""

import asyncio
import importlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
import pytest

PACKAGES = ("flows", "tasks", "storage", "privcore")


@pytest.fixture(scope="module")
def pyproject(repository: Path) -> dict[str, Any]:
    return tomllib.loads((repository / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def lock(repository: Path) -> str:
    return (repository / "requirements.lock").read_text()


def pinned(lock: str) -> dict[str, str]:
    """Name and version of every requirement in the lock."""
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", lock, re.MULTILINE))


@pytest.mark.parametrize("name", PACKAGES)
def test_no_other_distribution_shadows_our_packages(name: str, repository: Path) -> None:
    module = importlib.import_module(name)
    assert module.__file__ is not None
    assert Path(module.__file__).resolve().is_relative_to(repository / name)


def test_every_locked_requirement_has_a_version_and_a_hash(lock: str) -> None:
    blocks = [block for block in re.split(r"\n(?=\S)", lock) if not block.startswith("#")]
    assert len(blocks) > 50
    for block in blocks:
        assert re.match(r"[a-z0-9._-]+==\S+ \\\n", block), block.splitlines()[0]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block.splitlines()[0]


def test_lock_names_no_host_and_no_path(lock: str) -> None:
    assert "://" not in lock
    assert "/" not in lock
    options = set(re.findall(r"--([a-z-]+)", lock))
    assert options == {"hash", "no-deps", "require-hashes"}, "no index and no folder of wheels"


def test_every_direct_dependency_is_locked(lock: str, pyproject: dict[str, Any]) -> None:
    groups = pyproject["dependency-groups"]
    wanted = [*pyproject["project"]["dependencies"], *groups["learn"]]
    wanted += [line for line in groups["dev"] if isinstance(line, str)]
    names = {re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0] for line in wanted}
    assert names <= pinned(lock).keys()


def test_what_is_installed_is_what_is_locked(lock: str, pyproject: dict[str, Any]) -> None:
    direct = {
        re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0] for line in pyproject["project"]["dependencies"]
    }
    expected = {name: number for name, number in pinned(lock).items() if name in direct}
    assert {name: version(name) for name in expected} == expected


@pytest.mark.parametrize(("name", "limit"), [("fastapi", (0, 151)), ("sqlalchemy", (2, 1))])
def test_versions_that_break_prefect_stay_out(name: str, limit: tuple[int, int]) -> None:
    major, minor = (int(part) for part in version(name).split(".")[:2])
    assert (major, minor) < limit


def test_no_library_of_gigabytes_is_a_dependency(lock: str) -> None:
    assert not {"torch", "triton", "tensorflow"} & pinned(lock).keys()


def test_learning_is_optional(pyproject: dict[str, Any]) -> None:
    learn = pyproject["dependency-groups"]["learn"]
    assert pyproject["project"]["optional-dependencies"]["learn"] == learn
    assert {"include-group": "learn"} in pyproject["dependency-groups"]["dev"]
    assert not set(learn) & set(pyproject["project"]["dependencies"])


def test_every_topic_is_named_in_the_import_contracts(repository: Path, pyproject: dict[str, Any]) -> None:
    topics = {f"privcore.{folder.parent.name}" for folder in (repository / "privcore").glob("*/__init__.py")}
    contracts = {contract["name"]: contract for contract in pyproject["tool"]["importlinter"]["contracts"]}
    shared = set(contracts["shared mathematics knows no topic"]["source_modules"])
    assert set(contracts["nobody outside privcore names a topic"]["protected_modules"]) == topics
    assert set(contracts["topics do not import one another"]["modules"]) == topics - shared
    assert set(contracts["shared mathematics knows no topic"]["forbidden_modules"]) == topics - shared


# ------------------------------------------------------------------------------- a schedule really fires


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


@contextmanager
def prefect_server(folder: Path) -> Iterator[str]:
    """Run `prefect server start` with all its state in folder; yield the address of its API."""
    port = free_port()
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "server.log").open("w") as log:
        # In a session of its own, so that it and its children can be ended without touching anything else.
        server = subprocess.Popen(
            [*command, "--no-ui"],
            env=os.environ | {"PREFECT_HOME": str(folder)},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield f"http://127.0.0.1:{port}/api"
        finally:
            stop(server)


def stop(server: subprocess.Popen[bytes]) -> None:
    """End a server and its children, gently first."""
    family = psutil.Process(server.pid).children(recursive=True) if server.poll() is None else []
    server.send_signal(signal.SIGTERM)
    try:
        server.wait(timeout=15)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    for child in family:
        if child.is_running():
            child.kill()


async def first_scheduled_run(api: str, folder: Path, *, patience: float) -> str | None:
    """Deploy a flow with a cron schedule; return the state of the run that the scheduler made, if it did."""
    from prefect.client.orchestration import PrefectClient
    from prefect.client.schemas.actions import DeploymentScheduleCreate
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterDeploymentId
    from prefect.client.schemas.schedules import CronSchedule

    give_up = time.monotonic() + patience
    async with PrefectClient(api) as client:
        while await client.api_healthcheck() is not None:
            if time.monotonic() > give_up:
                pytest.fail("the server did not start:\n" + (folder / "server.log").read_text()[-2000:])
            await asyncio.sleep(0.2)
        flow_id = await client.create_flow_from_name("tick")
        schedule = DeploymentScheduleCreate(
            schedule=CronSchedule(cron="0 3 * * *", timezone="UTC"), active=True
        )
        deployment_id = await client.create_deployment(flow_id, name="nightly", schedules=[schedule])
        mine = FlowRunFilter(deployment_id=FlowRunFilterDeploymentId(any_=[deployment_id]))
        while time.monotonic() < give_up:
            for run in await client.read_flow_runs(flow_run_filter=mine, limit=1):
                return run.state.type.value if run.state else None
            await asyncio.sleep(0.2)
    return None


def test_a_cron_deployment_produces_a_scheduled_run(tmp_path: Path) -> None:
    with prefect_server(tmp_path) as api:
        state = asyncio.run(first_scheduled_run(api, tmp_path, patience=90))
    log = (tmp_path / "server.log").read_text()
    assert state == "SCHEDULED", "the scheduler made no run; the end of its log:\n" + log[-3000:]
