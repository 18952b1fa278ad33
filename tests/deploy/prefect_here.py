"""A Prefect server with the shipped environment and a worker of its pool, for queries and kills."""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil

from flows.runs.ports import free_port
from tests.busy import stretched

ROOT = Path(__file__).resolve().parents[2]
SUPPORT = ROOT / "tests" / "flows" / "support"
PATIENCE = 240.0  # seconds for anything, on a busy machine
Told = list[str]
FINAL = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}
_DIES_WITH_US = "from tasks.own_process import die_with; die_with({parent}); "
_SERVER = "import uvicorn; uvicorn.main()"
_PREFECT = "import runpy; runpy.run_module('prefect', run_name='__main__')"


def shipped_environment() -> dict[str, str]:
    """The variables of deploy/prefect.env."""
    lines = (ROOT / "deploy" / "prefect.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


class PrefectHere:
    """Server and worker, with their database and the working directory of runs below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.root.mkdir()
        self._port = free_port()
        self.address = f"http://127.0.0.1:{self._port}/api"
        self.environment = os.environ | {
            **shipped_environment(),
            "PREFECT_HOME": str(folder / "home"),
            "PREFECT_API_URL": self.address,
            "PREFECT_UI_ENABLED": "0",
            "PREFECT__SERVER_FINAL": "1",
            "PREFECT_WORKER_QUERY_SECONDS": "2",
            "PRIVSWEEP_ROOT": str(self.root),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(SUPPORT)]),
            "NO_COLOR": "1",
        }
        self.server: subprocess.Popen[bytes] | None = None
        self.worker: subprocess.Popen[bytes] | None = None

    # ------------------------------------------------------------------------------------- processes

    def start_server(self) -> None:
        """Start the server and wait until it answers."""
        arguments = ["--factory", "prefect.server.api.server:create_app", "--lifespan", "on"]
        arguments += ["--host", "127.0.0.1", "--port", str(self._port), "--log-level", "error"]
        arguments += ["--app-dir", str(ROOT)]  # as `prefect server start` does, not the working folder
        self.server = self._start("server", _SERVER, arguments)
        self.wait(self._answers, "the server answers")

    def start_worker(self) -> None:
        """Start a worker of the pool that is deployed to."""
        self.worker = self._start("worker", _PREFECT, ["worker", "start", "--pool", "privsweep"])

    def cli(self, *arguments: str) -> str:
        """Run `prefect ARGUMENTS` in the root of the repository; return its output."""
        return self.command(sys.executable, "-m", "prefect", *arguments)

    def command(self, *command: str, **environment: str) -> str:
        """Run a command in the root of the repository; return its output."""
        ended = subprocess.run(
            command,
            cwd=ROOT,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=stretched(PATIENCE),
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def make_deploy(self, **environment: str) -> None:
        """Run the recipe of `make deploy`, and pause all schedules: only processes of a test may run."""
        (recipe,) = re.findall(r"^deploy:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
        script = recipe.replace("\t@", "\t").replace("$(BIN)", str(Path(sys.executable).parent))
        self.command("sh", "-ec", script.replace("$$", "$"), **environment)
        for deployment in self.ask("deployments/filter"):
            self.ask(f"deployments/{deployment['id']}/pause_deployment")

    def below_worker(self) -> list[psutil.Process]:
        """All processes below the worker: flow runs, and their Ray."""
        return psutil.Process(self.worker.pid).children(recursive=True) if self.worker else []

    def stop(self) -> None:
        """End everything."""
        for process in (self.worker, self.server):
            if process is None or process.poll() is not None:
                continue
            family: list[Any] = psutil.Process(process.pid).children(recursive=True)
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            for each in [*family, process]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
            process.wait()

    def log(self, name: str) -> str:
        """The output of the server or the worker, its end."""
        return (self.folder / f"{name}.log").read_text()[-3000:]

    def _start(self, name: str, code: str, arguments: list[str]) -> "subprocess.Popen[bytes]":
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", _DIES_WITH_US.format(parent=os.getpid()) + code, *arguments],
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.address}/health", timeout=5, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    # --------------------------------------------------------------------------------------- questions

    def ask(self, path: str, **content: Any) -> Any:
        """Send a POST request to the API; return its answer."""
        tries = 5
        while True:
            answer = httpx.post(
                f"{self.address}/{path}", json=content, timeout=stretched(60), trust_env=False
            )
            tries -= 1
            if answer.status_code < 500 or not tries:  # else its SQLite was locked
                break
            time.sleep(1)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def settings(self) -> dict[str, Any]:
        """The settings that the server works with."""
        return dict(
            httpx.get(f"{self.address}/admin/settings", timeout=stretched(60), trust_env=False).json()
        )

    def deployment(self, name: str) -> dict[str, Any]:
        """The deployment of that name."""
        (found,) = self.ask("deployments/filter", deployments={"name": {"any_": [name]}})
        return dict(found)

    def runs(self, deployment: str, *states: str) -> list[dict[str, Any]]:
        """The runs of a deployment in these states, or all of them, the earliest first."""
        chosen: dict[str, Any] = {"deployment_id": {"any_": [self.deployment(deployment)["id"]]}}
        if states:
            chosen["state"] = {"type": {"any_": list(states)}}
        return list(self.ask("flow_runs/filter", flow_runs=chosen, sort="EXPECTED_START_TIME_ASC"))

    def start_run(self, deployment: str, retry_delay: int | None = None, **parameters: Any) -> str:
        """Start a run by hand, with these parameters instead of those of its deployment; return its id."""
        deployed = self.deployment(deployment)
        variables: dict[str, Any] = deployed["job_variables"]
        if retry_delay is not None:
            env = variables["env"] | {"PREFECT_FLOWS_DEFAULT_RETRY_DELAY_SECONDS": str(retry_delay)}
            variables = variables | {"env": env}
        run = self.ask(
            f"deployments/{deployed['id']}/create_flow_run",
            parameters=parameters,
            job_variables=variables,
            state={"type": "SCHEDULED"},
        )
        return str(run["id"])

    def run(self, run_id: str) -> dict[str, Any]:
        """A flow run."""
        (found,) = self.ask("flow_runs/filter", flow_runs={"id": {"any_": [run_id]}})
        return dict(found)

    def end_of(self, run_id: str) -> dict[str, Any]:
        """Wait until a run has ended; return it."""
        self.wait(lambda: self.run(run_id)["state_type"] in FINAL, f"run {run_id} ends")
        return self.run(run_id)

    def history(self, run_id: str) -> list[tuple[str, str]]:
        """The states of a run: their names with their messages."""
        answer = httpx.get(
            f"{self.address}/flow_run_states/",
            params={"flow_run_id": run_id},
            timeout=stretched(60),
            trust_env=False,
        )
        return [(state["name"], state["message"] or "") for state in answer.json()]

    def logs(self, run_id: str, level: int = 0) -> list[str]:
        """The log of a run from a level on, as the UI shows it."""
        chosen = {"flow_run_id": {"any_": [run_id]}, "level": {"ge_": level}}
        return [line["message"] for line in self.ask("logs/filter", logs=chosen, sort="TIMESTAMP_ASC")]

    def artifacts(self, run_id: str) -> dict[str, dict[str, Any]]:
        """The artifacts of a run, by key."""
        found = self.ask("artifacts/filter", artifacts={"flow_run_id": {"any_": [run_id]}})
        return {artifact["key"]: artifact for artifact in found}

    def wait(self, condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
        """Wait until a function returns a true value; return the value."""
        began = time.monotonic()
        while not (value := condition()):
            if self.server is not None and self.server.poll() is not None:
                raise AssertionError(f"the server ended:\n{self.log('server')}")
            if time.monotonic() - began > stretched(patience):
                logs = "\n".join(self.log(path.stem) for path in self.folder.glob("*.log"))
                raise AssertionError(f"not after {time.monotonic() - began:.0f} s: {what}\n{logs}")
            time.sleep(0.5)
        return value
