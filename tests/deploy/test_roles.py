"""Every role of the image, started in an environment as in the Containerfile (long form)."""

import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest

from flows.runs.ports import free_port
from tasks.own_process import die_with
from tests.busy import stretched
from tests.deploy.containerfile import Rehearsal
from tests.deploy.manifests import REPOSITORY

PATIENCE = 240.0  # seconds that a role gets to become healthy on a busy machine
PASSWORD = "admin:" + secrets.token_hex(8)

pytestmark = [pytest.mark.soak, pytest.mark.xdist_group("image")]


class Cluster:
    """A place where roles run as in containers of one network, which here is the loopback interface."""

    def __init__(self, image: Rehearsal, folder: Path) -> None:
        self.image = image
        self.folder = folder
        self.ports = {name: str(free_port()) for name in ("SERVER", "WORKER", "HEAD", "DASHBOARD")}
        self.common = image.environment() | {
            "PREFECT_HOME": str(folder / "prefect"),
            "RAY_TMPDIR": str(folder),
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "PREFECT_SERVER_API_PORT": self.ports["SERVER"],
            "PREFECT_WORKER_WEBSERVER_PORT": self.ports["WORKER"],
        }
        self.head = {"RAY_ADDRESS": f"127.0.0.1:{self.ports['HEAD']}"}
        self.server = {
            "PREFECT_API_URL": f"http://127.0.0.1:{self.ports['SERVER']}/api",
            "PREFECT_API_AUTH_STRING": PASSWORD,
        }

    def run(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a container and wait for its end."""
        return subprocess.run(
            [self.image.here("/usr/local/bin/role"), *command],
            env=self.common | more,
            cwd=self.image.root / "work",
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    @contextmanager
    def started(self, role: str, *arguments: str, **more: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start a role with ports that are free here, wait until it is healthy, end it as an engine would."""
        own = self.folder / role
        own.mkdir()
        text = Path(self.image.here("/usr/local/bin/role")).read_text()
        for name, port in {**self.ports, "AGENT": str(free_port())}.items():
            text = re.sub(rf"^{name}_PORT=\d+", f"{name}_PORT={port}", text, flags=re.MULTILINE)
        script = own / "role"
        script.write_text(text)
        script.chmod(0o755)
        environment = self.common | more | {"TMPDIR": str(own)}
        with (own / "log").open("w") as log:
            process = subprocess.Popen(
                [script, role, *arguments],
                env=environment,
                cwd=self.image.root / "work",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509  it takes no lock
            )
        family: list[psutil.Process] = []
        try:
            began = time.monotonic()
            while subprocess.run(
                [script, "health"], env=environment, capture_output=True, check=False
            ).returncode:
                assert process.poll() is None, (own / "log").read_text()[-3000:]
                assert time.monotonic() - began < stretched(PATIENCE), (own / "log").read_text()[-3000:]
                time.sleep(1)
            yield process
        finally:
            if process.poll() is None:
                family = psutil.Process(process.pid).children(recursive=True)
                process.send_signal(signal.SIGTERM)  # as tini does
            try:
                process.wait(timeout=45)  # as long as compose waits
            finally:
                for child in [*family, *([psutil.Process(process.pid)] if process.poll() is None else [])]:
                    if child.is_running():
                        child.kill()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    rehearsal = Rehearsal(REPOSITORY, tmp_path_factory.mktemp("image"))
    rehearsal.build()
    (rehearsal.root / "work").mkdir()
    yield rehearsal
    shutil.rmtree(rehearsal.root)  # two gigabytes; pytest would keep three copies


@pytest.fixture
def cluster(image: Rehearsal) -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="psd-", dir="/tmp"))  # short: Ray puts sockets below it
    yield Cluster(image, folder)
    shutil.rmtree(folder, ignore_errors=True)


def test_the_image_answers_without_anything_else(cluster: Cluster) -> None:
    done = cluster.run("privsweep", "epsilon", "--sampling", "none", "--sigma", "1", "--delta", "1e-5")
    assert done.returncode == 0, done.stderr


def test_the_image_has_machine_code_for_every_processor_of_its_architecture(image: Rehearsal) -> None:
    compiled = Path(image.environment()["PRIVSWEEP_COMPILED"])
    assert len(list(compiled.glob("*/*.nbi"))) > 20
    assert image.environment()["NUMBA_CPU_NAME"] == "generic"


def test_all_roles_together_run_a_sweep_and_a_worker_ends_with_its_node(cluster: Cluster) -> None:
    with ExitStack() as stack:
        start = partial(stack.enter_context)
        start(cluster.started("server", PREFECT_SERVER_API_AUTH_STRING=PASSWORD))
        deployed = cluster.run("deployments", **cluster.server)
        assert deployed.returncode == 0, deployed.stdout + deployed.stderr
        assert "any-sweep" in deployed.stdout
        start(cluster.started("head"))
        start(cluster.started("node", "--num-cpus=1", **cluster.head))
        worker = start(cluster.started("worker", "--pool", "privsweep", **cluster.head, **cluster.server))

        sweep = ("privsweep", "run", "allocation-epsilon", "steps=100", "delta=1e-5", "--engine", "ray")
        done = cluster.run(*sweep, "sigma=1,2", **cluster.head, **cluster.server)
        assert done.returncode == 0, done.stderr + (cluster.folder / "head" / "log").read_text()
        query = "select git_commit, count(*) from results group by 1"
        done = cluster.run("privsweep", "sql", query)
        assert done.stdout.split()[-2:] == ["rehearsed", "2"], done.stdout

        # As KubeRay submits a RayJob: through the dashboard, with the token.
        job = ("ray", "job", "submit", "--address", f"http://127.0.0.1:{cluster.ports['DASHBOARD']}", "--")
        done = cluster.run(*job, *sweep, "sigma=3")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "1 points, 1 computed" in done.stdout
        listed = cluster.run("ray", "list", "tasks", "--address", job[4])
        assert "allocation.certified" in listed.stdout, listed.stdout + listed.stderr
        done = cluster.run(*job, "true", RAY_AUTH_TOKEN="0" * 64)
        assert done.returncode != 0, "a wrong token was let in"

        children = psutil.Process(worker.pid).children(recursive=True)
        (raylet,) = [child for child in children if child.name() == "raylet"]
        raylet.kill()
        worker.wait(timeout=60)
