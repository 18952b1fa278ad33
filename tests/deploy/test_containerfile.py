"""The image: content of its Containerfile and, in the long form, its effect without an engine."""

import os
import re
import subprocess
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.deploy.containerfile import Rehearsal, context, read, tracked, variables
from tests.deploy.manifests import DEPLOY, REPOSITORY

BUILD, FINAL = read(DEPLOY / "Containerfile")
ROLE = DEPLOY / "role"


def test_everything_that_is_copied_is_tracked_and_let_in() -> None:
    files = context(REPOSITORY)
    for step in [*BUILD.all("COPY"), *FINAL.all("COPY")]:
        if not step.words[0].startswith("--from"):
            for source in step.words[:-1]:
                assert any(path == source or path.startswith(f"{source}/") for path in files), source


def test_nothing_is_let_in_that_is_not_copied() -> None:
    sources = {source for step in [*BUILD.all("COPY"), *FINAL.all("COPY")] for source in step.words[:-1]}
    for path in context(REPOSITORY):
        assert path in sources or path.split("/")[0] in sources, path
    assert len(context(REPOSITORY)) < len(tracked(REPOSITORY))


def test_every_command_is_one_for_the_shell() -> None:
    for step in [*BUILD.all("RUN"), *FINAL.all("RUN")]:
        subprocess.run(["sh", "-n", "-c", step.text], check=True)
    subprocess.run(["sh", "-n", str(ROLE)], check=True)
    assert os.access(ROLE, os.X_OK)


def test_only_pip_with_hashes_and_the_package_itself_are_installed() -> None:
    installs = [part for step in BUILD.all("RUN") for part in step.text.split("&&") if "pip install" in part]
    assert len(installs) == 2
    assert "--no-deps --require-hashes -r /src/deploy/image.lock" in installs[0]
    assert "--no-deps --no-build-isolation /src" in installs[1]
    assert any("pip check" in step.text for step in BUILD.all("RUN"))


def test_the_image_runs_as_a_user_without_rights() -> None:
    assert FINAL.last("USER").text == "1001:1001"
    assert "useradd --uid 1001" in FINAL.all("RUN")[-1].text
    assert not FINAL.all("ADD")


def test_signals_reach_what_runs_and_its_health_is_asked() -> None:
    assert FINAL.last("ENTRYPOINT").words == ["tini", "--", "role"]
    assert FINAL.last("CMD").words == ["privsweep", "--help"]
    assert FINAL.last("HEALTHCHECK").text.endswith('CMD ["role", "health"]')
    assert re.search(r"apt-get install .*\btini\b", FINAL.all("RUN")[0].text)


def test_every_program_that_a_role_starts_is_an_entry_point_of_what_is_installed() -> None:
    started = set(re.findall(r"(?:exec|^\s+)\s*(prefect|ray|privsweep) ", ROLE.read_text(), re.MULTILINE))
    assert started == {"prefect", "ray", "privsweep"}
    assert started <= {entry.name for entry in entry_points(group="console_scripts")}


def test_what_the_image_labels_itself_with_is_complete() -> None:
    labels = set(re.findall(r"org\.opencontainers\.image\.(\w+)=", FINAL.all("LABEL")[0].text))
    assert labels == {"title", "description", "version", "revision"}


def test_both_stages_begin_with_the_same_base() -> None:
    assert BUILD.base == "${BASE} AS build"
    assert FINAL.base == "${BASE}"
    pinned = r"^ARG BASE=docker\.io/library/python:3\.11\.\d+-slim-bookworm@sha256:[0-9a-f]{64}$"
    assert re.search(pinned, (DEPLOY / "Containerfile").read_text(), re.MULTILINE)


def test_a_node_without_an_address_says_what_it_expected(tmp_path: os.PathLike[str]) -> None:
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)}
    done = subprocess.run([ROLE, "node"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "Expected RAY_ADDRESS=host:port of the Ray head.\n"


@pytest.mark.parametrize("role", ["server", "head", "node", "worker"])
def test_a_role_that_does_not_answer_is_not_healthy(role: str, tmp_path: os.PathLike[str]) -> None:
    (REPOSITORY.__class__(tmp_path) / "privsweep-role").write_text(role)
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), "PREFECT_WORKER_WEBSERVER_PORT": "1"}
    environment["PREFECT_SERVER_API_PORT"] = "1"
    done = subprocess.run([ROLE, "health"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("no answer: http://127.0.0.1:")


EXAMPLES = {
    "RAY_AUTH_TOKEN": "replace-me",
    "PREFECT_API_AUTH_STRING": "admin:replace-me",
    "PREFECT_SERVER_API_AUTH_STRING": "admin:pass",
    "PREFECT_SERVER_DATABASE_PASSWORD": "replace-me",
    "PREFECT_SERVER_DATABASE_CONNECTION_URL": "postgresql+asyncpg://USER:PASSWORD@HOST:5432/prefect",
}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_no_role_starts_with_the_secret_of_an_example(name: str) -> None:
    environment = {"PATH": os.environ["PATH"], name: EXAMPLES[name]}
    done = subprocess.run([ROLE, "echo"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"Expected a secret of your own in {name}, got the value of an example.\n"
    environment[name] = "admin:6d2f"
    subprocess.run([ROLE, "echo"], env=environment, capture_output=True, check=True)


@pytest.mark.parametrize(("code", "of_the_job"), [(0, 0), (6, 0), (1, 1), (2, 2), (5, 5)])
def test_points_without_an_answer_do_not_make_a_job_fail(tmp_path: Path, code: int, of_the_job: int) -> None:
    program = tmp_path / "privsweep"
    program.write_text(f'#!/bin/sh\necho "$@"\nexit {code}\n')
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        [ROLE, "sweep", "quickstart", "--retry"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (of_the_job, "run quickstart --retry\n")


def test_any_other_command_is_run_as_it_is() -> None:
    done = subprocess.run([ROLE, "echo", "a b"], capture_output=True, text=True, check=True)
    assert done.stdout == "a b\n"


def test_the_image_says_what_its_rows_were_computed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    from storage.schema import _commit_of

    assert variables(FINAL)["PRIVSWEEP_COMMIT"] == "${COMMIT}"
    monkeypatch.setenv("PRIVSWEEP_COMMIT", "abc")
    assert _commit_of(REPOSITORY / "no" / "repository") == ("abc", None)
    monkeypatch.setenv("PRIVSWEEP_COMMIT", "")
    assert _commit_of(REPOSITORY / "no" / "repository") == ("unknown", None)


def test_a_rehearsal_changes_the_paths_of_the_image_alone() -> None:
    rehearsal = Rehearsal(REPOSITORY, REPOSITORY / "build")
    assert rehearsal.here("/opt/a /src /usr/local/bin/role a/opt") == (
        f"{REPOSITORY}/build/opt/a {REPOSITORY}/build/src {REPOSITORY}/build/usr/local/bin/role a/opt"
    )
