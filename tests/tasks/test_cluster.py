"""The folder of Ray on this machine: it exists as long as its owner, also in a shared parent folder."""

import os
import pwd
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tasks import cluster
from tasks.cluster import own_folder

OWNER = """
import sys
from tasks.cluster import own_folder
with own_folder() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""
APART = ["unshare", "--map-root-user", "--pid", "--fork", "--kill-child"]
"""A command that does not see our processes, as in another container."""


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder that owners share."""
    monkeypatch.setattr(cluster, "LONGEST_BASE", 1000)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_its_owner_and_is_left_alone_before(base: Path) -> None:
    with own_folder() as first:
        (first / "session").mkdir()
        with own_folder() as second:
            assert (first / "session").exists()
            assert first.parent.parent == second.parent.parent == base
    assert list(base.iterdir()) == []


@pytest.mark.parametrize("apart", [[], APART])
def test_the_folder_of_a_killed_owner_is_removed_and_that_of_a_living_one_is_not(
    base: Path, apart: list[str]
) -> None:
    if apart and subprocess.run([*apart, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine does not allow separate PID namespaces")
    code = "from tasks import cluster; cluster.LONGEST_BASE = 1000" + OWNER
    owner = subprocess.Popen(
        [*apart, sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "RAY_TMPDIR": str(base)},
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        with own_folder():
            assert folder.is_dir()
        owner.kill()
    give_up = time.monotonic() + 20  # the kernel ends the children of a killed command a moment later
    while folder.exists() and time.monotonic() < give_up:
        with own_folder():
            pass
    assert not folder.exists()


def test_a_folder_whose_removal_was_killed_is_removed(base: Path) -> None:
    left = base / f"{cluster.PREFIX}left"
    (left / "session").mkdir(parents=True)
    with own_folder():
        assert not left.exists()


def test_a_link_is_not_followed(base: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / cluster.LOCK).touch()
    (base / f"{cluster.PREFIX}link").symlink_to(elsewhere)
    with own_folder():
        assert (elsewhere / cluster.LOCK).exists()


STARTED = """
import sys
from tasks import cluster
with cluster.started_here(1):
    import ray
    @ray.remote
    def one():
        return 1
    print(ray.get(one.remote()), ray._private.worker._global_node.get_session_dir_path(), flush=True)
    sys.stdin.readline()
    print(ray.get(one.remote()), flush=True)
"""
BREAK_IN = """
import os, sys
session, reached = sys.argv[1], []
for name in ("", "sockets", "sockets/raylet", "logs"):
    path = os.path.join(session, name)
    for act in (os.listdir, os.stat, lambda p: os.rename(p, p + "-moved")):
        try:
            act(path)
            reached.append(path)
        except OSError:
            pass
print(reached)
"""


@pytest.mark.thorough
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_reaches_no_file_of_a_running_ray() -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RAY_AUTH")}
    environment["RAY_TMPDIR"] = "/tmp"  # that of tests is below a folder that is private anyway
    with subprocess.Popen(
        [sys.executable, "-c", STARTED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        answer, session = run.stdout.readline().split()
        command = ["/usr/bin/env", "python3", "-c", BREAK_IN, session]
        attack = subprocess.run(
            command,
            user="nobody",
            group=pwd.getpwnam("nobody").pw_gid,
            extra_groups=[],
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
        )
        run.stdin.write("on\n")
        run.stdin.close()
        assert (answer, run.stdout.read().strip()) == ("1", "1"), "the run goes on"
    assert attack.stdout.strip() == "[]", attack.stderr
    assert run.returncode == 0
    assert not Path(session).exists()
