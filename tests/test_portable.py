"""The light core without the parts of Linux that macOS lacks."""

import ast
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from storage.heartbeats import _since, _since_by_ps
from tests.test_project import modules

LACKING = {
    "os": ("sched_getaffinity", "sched_setaffinity", "pidfd_open", "posix_fadvise", "memfd_create", "eventfd",
           "splice", "copy_file_range", "setns", "unshare", "O_TMPFILE", "O_DIRECT", "sched_getscheduler"),
    "select": ("epoll",),
    "signal": ("sigtimedwait", "sigwaitinfo", "SIGRTMIN", "SIGRTMAX", "pidfd_send_signal", "SIGPWR"),
    "socket": ("AF_NETLINK", "AF_PACKET", "SO_PEERCRED"),
    "resource": ("prlimit",),
    "fcntl": ("F_SETPIPE_SZ", "F_ADD_SEALS"),
}  # fmt: skip
FILES = ("/proc", "/sys", "/dev/shm")

CUSTOMIZED = f"""
import fcntl, os, resource, select, signal, socket, sys

for module, names in {LACKING!r}.items():
    for name in names:
        if hasattr(sys.modules[module], name):
            delattr(sys.modules[module], name)

def refuse(event, arguments):
    if event == "open" and str(arguments[0]).startswith({FILES!r}):
        raise FileNotFoundError(2, "No such file or directory", arguments[0])
    if event == "ctypes.dlsym" and arguments[1] == "prctl":
        raise AttributeError("prctl")

sys.addaudithook(refuse)
"""
"""Code of `sitecustomize.py`, which every Python process imports at its start, also a child of ours."""

IMPORT_ALL = """
import importlib, pkgutil, sys
extras = set("altair fastapi jax matplotlib optax prefect ray s3fs sklearn sqlalchemy uvicorn".split())
sys.modules |= dict.fromkeys(extras)  # as if they were not installed
for name in ("privcore", "storage", "tasks", "flows", "privsweep"):
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
        if module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name.partition(".")[0] not in extras:
                raise
            print(module.name)
"""
NEEDING_EXTRAS = {
    "flows.deployments",
    "flows.page.impatient",
    "flows.runs.guarded_server",
    "flows.runs.method_runs",
    "flows.page.serve",
    "privcore.auditing.canary_training",
    "privcore.labels.learning.training",
    "privcore.membership.experiments.network",
    "privcore.membership.experiments.three_layers",
}
ORPHAN = """
import os, subprocess, sys, time
child = "import time; from tasks.own_process import die_with; "
child += "die_with({parent}); print(1, flush=True); time.sleep(60)"
running = subprocess.Popen([sys.executable, "-c", child.format(parent=os.getpid())])
print(running.pid, flush=True)
time.sleep(60)
"""
GUARDED = {
    "storage/heartbeats.py": {"/proc"},
    "tasks/engine.py": {"sched_getaffinity"},
    "tasks/guard.py": {"/proc", "/sys"},
    "tasks/own_process.py": {"prctl"},
}
"""Modules that use a part of Linux if it is there; the tests below run them without it."""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> dict[str, str]:
    """An environment in which Python lacks these parts."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "sitecustomize.py").write_text(CUSTOMIZED)
    return os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{repository}"}


def ended(words: list[str], environment: dict[str, str], folder: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, *words], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_no_other_module_names_a_part_that_macos_lacks(repository: Path) -> None:
    lacking = {name for names in LACKING.values() for name in names} | {"prctl", "epoll"}
    found: dict[str, set[str]] = {}
    for path in modules(repository):
        if path.suffix != ".py" or path.is_relative_to(repository / "tests"):
            continue
        nodes = list(ast.walk(ast.parse(path.read_text())))
        used = {n.attr for n in nodes if isinstance(n, ast.Attribute)} & lacking
        used |= {alias.name for n in nodes if isinstance(n, ast.ImportFrom) for alias in n.names} & lacking
        texts = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        used |= {start for start in FILES for text in texts if text.startswith(f"{start}/")}
        if used:
            found[str(path.relative_to(repository))] = used
    assert found == GUARDED


@pytest.mark.thorough
def test_every_module_is_imported_without_them(elsewhere: dict[str, str], tmp_path: Path) -> None:
    code, out, err = ended(["-c", IMPORT_ALL], elsewhere, tmp_path)
    assert (code, set(out.split())) == (0, NEEDING_EXTRAS), err


@pytest.mark.thorough
def test_a_question_and_a_sweep_work_without_them(elsewhere: dict[str, str], tmp_path: Path) -> None:
    lacks = "import os; print(hasattr(os, 'sched_getaffinity'), os.path.exists('x'))"
    assert ended(["-c", lacks], elsewhere, tmp_path) == (0, "False False\n", "")
    question = ["unamplified-epsilon", "sigma=1", "delta=1e-5"]
    program = ["-m", "privsweep"]
    code, out, err = ended([*program, "ask", *question], elsewhere, tmp_path)
    assert (code, "epsilon in [4.37717" in out) == (0, True), err
    code, out, err = ended([*program, "run", *question, "--engine", "serial"], elsewhere, tmp_path)
    assert (code, "1 computed" in out) == (0, True), err
    assert ended([*program, "lookup", *question], elsewhere, tmp_path)[0] == 0
    assert ended([*program, "verify"], elsewhere, tmp_path)[0] == 0


@pytest.mark.thorough
@pytest.mark.parametrize("linux", [True, False], ids=["linux", "elsewhere"])
def test_a_child_ends_with_its_parent(linux: bool, elsewhere: dict[str, str], tmp_path: Path) -> None:
    environment = {**os.environ} if linux else elsewhere
    with subprocess.Popen(
        [sys.executable, "-c", ORPHAN], env=environment, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert parent.stdout.readline() == "1\n", "the child watches its parent"
        assert _since(child) != ""
        parent.kill()
        until = time.monotonic() + 30
        while _since(child) and time.monotonic() < until:
            time.sleep(0.05)
    assert _since(child) == ""


def test_ps_distinguishes_processes_by_their_start() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        first = _since_by_ps(child.pid)
        assert first == _since_by_ps(child.pid) != ""
        assert " " not in first
        child.kill()
        child.poll()
        until = time.monotonic() + 30
        while _since_by_ps(child.pid) and time.monotonic() < until:
            time.sleep(0.05)
    assert _since_by_ps(child.pid) == ""
    assert _since_by_ps(os.getpid()) != first
