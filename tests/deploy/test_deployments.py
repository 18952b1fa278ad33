"""A schedule fires: server, worker and deployment as they are shipped, and the run in Prefect."""

import re
import runpy
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from storage import open_store
from tests.deploy.prefect_here import ROOT, PrefectHere
from tests.hostile import MARK, fill

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("prefect")]

SWEEP = "membership-privacy"  # closed forms: 165 points in less than a second
SHIPPED = ROOT / "deploy" / "prefect.yaml"


def with_an_interval(folder: Path, name: str, seconds: int) -> Path:
    """The shipped file with the deployment of one more sweep, as deploy/schedule.py makes it, but often."""
    schedule = runpy.run_path(str(ROOT / "deploy" / "schedule.py"))
    made = schedule["deployment"](name, "0 4 * * 1", "Europe/Berlin")
    made["schedules"] = [{"interval": seconds}]
    made["parameters"] |= {"workers": 1, "reports_url": "https://reports.example/"}
    shipped = yaml.safe_load(SHIPPED.read_text())
    shipped["deployments"].append(made)
    changed = folder / "prefect.yaml"
    changed.write_text(yaml.safe_dump(shipped))
    return changed


@pytest.fixture(scope="module")
def prefect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectHere]:
    """A server to which one sweep is deployed with an interval, and another as shipped; a worker."""
    folder = tmp_path_factory.mktemp("prefect")
    here = PrefectHere(folder)
    fill(folder)
    fill(here.root)
    try:
        here.start_server()
        here.ask("work_pools/", name="privsweep", type="process")
        changed = with_an_interval(folder, SWEEP, 20)
        here.cli("--no-prompt", "deploy", "--prefect-file", str(changed), "--all")
        here.start_worker()
        yield here
    finally:
        here.stop()


@pytest.fixture(scope="module")
def run(prefect: PrefectHere) -> dict[str, Any]:
    """The first run that the schedule started, when it has ended; there is no second one."""
    began = prefect.wait(
        lambda: prefect.runs(SWEEP, "RUNNING", "COMPLETED", "FAILED"), "a scheduled run begins"
    )
    prefect.ask(f"deployments/{prefect.deployment(SWEEP)['id']}/pause_deployment")
    ended = prefect.end_of(began[0]["id"])
    # Logs come in a moment later.
    prefect.wait(
        lambda: any("Finished" in line for line in prefect.logs(ended["id"])[-1:]), "its log is there"
    )
    return ended


@pytest.fixture(scope="module")
def killed(prefect: PrefectHere, run: dict[str, Any]) -> tuple[str, str]:
    """A run that is killed, and the next one on its store, which waits for two minutes."""
    assert run["state_type"] == "COMPLETED", "it has left the worker"
    run_id = prefect.start_run("any-sweep", sweep="lookup", store="killed", workers=1, reports=None)
    running = partial(task_states, prefect, run_id)
    prefect.wait(lambda: "RUNNING" in running(), "a task runs")
    assert prefect.worker is not None
    for flow in psutil.Process(prefect.worker.pid).children():
        flow.kill()
    assert prefect.end_of(run_id)["state_type"] == "CRASHED"
    assert "RUNNING" in running()
    return run_id, prefect.start_run("any-sweep", sweep=TEXT, store="killed", workers=1, reports=None)


def task_states(prefect: PrefectHere, run_id: str) -> set[str]:
    return {
        each["state_type"] for each in prefect.ask("task_runs/filter", flow_runs={"id": {"any_": [run_id]}})
    }


def test_a_cron_deployment_produces_a_scheduled_run(prefect: PrefectHere) -> None:
    """Without limits on SQLAlchemy the scheduler makes no run; only this test notices: docs/adr/0004."""
    scheduled = prefect.wait(lambda: prefect.runs("quickstart", "SCHEDULED"), "a run is scheduled", 60)
    assert {each["state_name"] for each in scheduled} == {"Scheduled"}
    assert scheduled[0]["auto_scheduled"]


def test_the_shipped_environment_keeps_quiet_forgets_and_survives(prefect: PrefectHere) -> None:
    server = prefect.settings()["server"]
    assert not server["analytics_enabled"]
    assert set(server["services"]["db_vacuum"]["enabled"]) == {"events", "flow_runs"}
    assert server["concurrency"]["lease_storage"].endswith(".filesystem")


def test_the_schedule_computes_the_sweep(prefect: PrefectHere, run: dict[str, Any]) -> None:
    assert run["auto_scheduled"]
    assert (run["state_type"], run["state_name"]) == ("COMPLETED", "Completed")
    assert re.fullmatch(r"165 points, 165 computed in .* s\.", run["state"]["message"])
    assert re.fullmatch(SWEEP + r" \d{4}-\d\d-\d\d \d\d:\d\d UTC: 165 points, none failed", run["name"])
    with open_store(prefect.root / "store") as store:
        (rows,) = store.sql("select count(*) as n, count(distinct point_id) as ids from results").to_pylist()
        (manifest,) = store.manifests()
    assert (rows["n"], rows["ids"]) == (165, 165)
    assert (manifest.name, manifest.status) == (SWEEP, "complete")


def test_each_deployment_has_a_flow_of_its_own(prefect: PrefectHere) -> None:
    flows = {each["id"]: each["name"] for each in prefect.ask("flows/filter")}
    deployed = {name: flows[prefect.deployment(name)["flow_id"]] for name in (SWEEP, "quickstart")}
    assert deployed == {name: f"privsweep-{name}" for name in deployed}


def test_each_problem_and_method_has_a_task_run(prefect: PrefectHere, run: dict[str, Any]) -> None:
    def ended() -> list[dict[str, Any]]:
        tasks = prefect.ask("task_runs/filter", flow_runs={"id": {"any_": [run["id"]]}})
        return list(tasks) if all(task["end_time"] for task in tasks) else []

    tasks = prefect.wait(ended, "the ends of its task runs are recorded", 60)
    pattern = r"(\S+) on membership-private-advantage: (\d+) points, (\d+)%"
    named = [re.fullmatch(pattern, task["name"]).groups() for task in tasks]  # type: ignore[union-attr]
    with open_store(prefect.root / "store") as store:
        methods = store.sql("select method, count(*)::varchar as n from results group by all").to_pylist()
    assert sorted((method, n) for method, n, _ in named) == sorted(
        (row["method"], row["n"]) for row in methods
    )
    assert 95 <= sum(int(share) for *_, share in named) <= 105
    assert {task["state_name"] for task in tasks} == {"Completed"}
    assert all(
        task["state"]["message"].startswith(f"{n} points, ")
        for task, (_, n, _) in zip(tasks, named, strict=True)
    )


def test_neither_server_nor_worker_nor_run_imports_a_file_of_its_folder(
    prefect: PrefectHere, run: dict[str, Any]
) -> None:
    assert run["state_type"] == "COMPLETED"
    assert not (prefect.folder / MARK).exists()
    assert not (prefect.root / MARK).exists()


def test_artifacts_show_progress_what_was_computed_and_the_report(
    prefect: PrefectHere, run: dict[str, Any]
) -> None:
    shown = prefect.artifacts(run["id"])
    assert shown.keys() == {f"{SWEEP}-{what}" for what in ("progress", "computed", "report")}
    assert shown[f"{SWEEP}-progress"]["data"] == 100.0
    table = yaml.safe_load(shown[f"{SWEEP}-computed"]["data"])
    assert sum(row["points"] for row in table) == 165
    assert all(row["statuses"] == f"{row['points']} ok" and row["seconds"] > 0 for row in table)
    assert {row["problem"] for row in table} == {"membership-private-advantage"}
    assert "165 of 165 points" in shown[f"{SWEEP}-progress"]["description"]
    report = shown[f"{SWEEP}-report"]
    assert report["type"] == "markdown"
    assert f"(https://reports.example/{SWEEP}.html)" in report["data"].splitlines()[0]
    assert "| answered | 165 |" in report["data"]
    assert "<html" in (prefect.root / "reports" / f"{SWEEP}.html").read_text()


def test_the_log_tells_what_ray_workers_did(prefect: PrefectHere, run: dict[str, Any]) -> None:
    lines = prefect.logs(run["id"])
    said = [
        line
        for line in lines
        if re.fullmatch(r"\S+: \d+ points, .* s, on \S+ \d+ \(\d of \d batches\)", line)
    ]
    assert sum(int(line.split()[1]) for line in said) == 165
    with open_store(prefect.root / "store") as store:
        hosts = {row["host"] for row in store.sql("select distinct host from results").to_pylist()}
    assert hosts == {line.split(" on ")[1].split()[0] for line in said}
    assert not prefect.logs(run["id"], level=30), "nothing went wrong"


TEXT = """
name = "mine"
[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
product = {sigma = [1, 2, 3], delta = 1e-5}
"""


@pytest.mark.usefixtures("killed")
def test_any_sweep_can_be_started_by_its_text_or_chosen_by_its_name(
    prefect: PrefectHere, run: dict[str, Any]
) -> None:
    assert run["state_type"] == "COMPLETED", "it has left the store"
    deployed = prefect.deployment("any-sweep")
    names, text = deployed["parameter_openapi_schema"]["properties"]["sweep"]["anyOf"]
    assert {"quickstart", "lookup"} <= set(names["enum"])
    assert text["type"] == "string"
    assert deployed["schedules"] == []
    started = prefect.ask(
        f"deployments/{deployed['id']}/create_flow_run",
        parameters=deployed["parameters"] | {"sweep": TEXT, "workers": 1, "reports": None},
    )
    ended = prefect.end_of(started["id"])
    assert (ended["state_type"], ended["name"].split()[0]) == ("COMPLETED", "mine"), ended["state"]["message"]
    with open_store(prefect.root / "store") as store:
        assert "mine" in {manifest.name for manifest in store.manifests()}


# ------------------------------------------------------------------------- the commands of the documentation


def commands(title: str) -> str:
    """The commands of a section of deploy/README.md, with the programs of this environment."""
    text = (ROOT / "deploy" / "README.md").read_text().split(f"**{title}**")[1].split("\n**")[0]
    lines = "".join(line[4:] for line in text.splitlines(keepends=True) if line.startswith("    "))
    lines = lines.replace(".venv/bin/", f"{Path(sys.executable).parent}/")
    return lines.replace(" deploy/", f" {ROOT}/deploy/")


def started(prefect: PrefectHere, deployment: str, before: int, number: int = 1) -> list[dict[str, Any]]:
    """The runs of a deployment that began after the first ones, when they have ended."""
    runs = prefect.wait(
        lambda: found if len(found := prefect.runs(deployment)[before:]) == number else None, "runs begin"
    )
    return [prefect.end_of(each["id"]) for each in runs]


def test_three_commands_of_the_readme_schedule_ones_own_sweep(
    prefect: PrefectHere, run: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(TEXT.replace('"mine"', '"nightly"'))
    script = commands("A sweep of your own.")
    assert len(script.splitlines()) == 3
    printed = prefect.command(
        "sh", "-ec", f"cd {tmp_path}\n{script.replace('privsweep/mine', 'privsweep/nightly')}"
    )
    assert "3 points" in printed, "the estimate"
    deployed = prefect.deployment("nightly")
    assert deployed["schedules"][0]["schedule"] == {
        "cron": "0 4 * * 1",
        "timezone": "Europe/Berlin",
        "day_or": True,
    }
    scheduled = prefect.wait(lambda: prefect.runs("nightly", "SCHEDULED"), "a run is scheduled", 60)
    assert scheduled[0]["auto_scheduled"]
    (now,) = prefect.runs("nightly", "COMPLETED")
    assert now["state"]["message"].startswith("3 points, ")
    assert now["name"].startswith("nightly ")


def test_a_sweep_deployed_again_without_a_time_has_no_schedule(prefect: PrefectHere, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(TEXT.replace('"mine"', '"weekly"'))
    command = (sys.executable, "deploy/schedule.py", str(tmp_path / "mine.toml"))
    prefect.command(*command, "0 4 * * 1")
    assert len(prefect.deployment("weekly")["schedules"]) == 1
    assert "Removed the schedule 0 4 * * 1 of privsweep/weekly" in prefect.command(*command)
    assert prefect.deployment("weekly")["schedules"] == []
    assert "Removed" not in prefect.command(*command)


def test_a_run_of_any_sweep_takes_a_file_or_its_text_as_the_readme_says(
    prefect: PrefectHere, run: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(TEXT.replace("[1, 2, 3]", "[4, 5]"))
    (prefect.root / "mine.toml").write_text(TEXT.replace("[1, 2, 3]", "[6, 7]").replace('"mine"', "'ours'"))
    script = commands("One run of any sweep.").replace("$PWD/", "")  # a relative path is one of the worker
    before = len(prefect.runs("any-sweep"))
    prefect.command("sh", "-ec", f"cd {tmp_path}\n{script}")
    ended = started(prefect, "any-sweep", before, script.count("any-sweep"))
    assert {each["state_name"] for each in ended} == {"Completed"}
    assert sorted(each["name"].split()[0] for each in ended) == ["mine", "ours"], (
        "as the sweeps, not the file"
    )
    with open_store(prefect.root / "store") as store:
        sigmas = store.sql("select distinct sigma from unamplified_epsilon where sigma > 3").to_pylist()
    assert sorted(each["sigma"] for each in sigmas) == [4, 5, 6, 7]


# ---------------------------------------------------------------------------------------- one run at a time


def test_runs_of_one_deployment_wait_for_their_store_and_cancel_no_other(
    prefect: PrefectHere, run: dict[str, Any]
) -> None:
    parameters: dict[str, Any] = {"sweep": TEXT, "workers": 1, "reports": None}
    (prefect.root / "crowded").mkdir()
    (prefect.root / "link").symlink_to("crowded")
    stores = ["crowded", "crowded/", "link", "elsewhere"]
    runs = [prefect.start_run("any-sweep", **parameters, store=store) for store in stores]
    ended = [prefect.end_of(each) for each in runs]
    assert [each["state_name"] for each in ended] == ["Completed"] * 4
    assert sorted(each["state"]["message"].split(" computed")[0] for each in ended) == sorted(
        ["3 points, 3"] * 2 + ["3 points, 0"] * 2
    ), "nothing is computed twice"


# ------------------------------------------------------------------------------------------- a run that fails


def says_how_it_ended(prefect: PrefectHere, run_id: str) -> bool:
    return any("Finished in state Failed" in line for line in prefect.logs(run_id))


def test_a_failed_run_has_a_message_and_no_traceback(prefect: PrefectHere) -> None:
    (prefect.root / "file").write_text("no folder")
    for parameters in ({"sweep": "quickstar"}, {"sweep": SWEEP, "store": "file/store"}):
        run_id = prefect.start_run("any-sweep", retry_delay=1, **parameters)
        ended = prefect.end_of(run_id)
        assert ended["state_type"] == "FAILED"
        prefect.wait(partial(says_how_it_ended, prefect, run_id), "its log is there")
        time.sleep(3)  # more may come in a moment later
        lines = prefect.logs(run_id)
        assert not any("Traceback" in line for line in lines), lines
        assert any(ended["state"]["message"] in line for line in lines)


def test_task_runs_of_a_killed_run_end_with_the_next_run(
    prefect: PrefectHere, killed: tuple[str, str]
) -> None:
    run_id, following = killed
    assert prefect.end_of(following)["state_type"] == "COMPLETED"
    waits = [line for line in prefect.logs(following) if line.startswith("Waiting until")]
    pattern = r"Waiting until the turn of a killed run on the store \S+/killed ends, by \d\d:\d\d:\d\d UTC\."
    assert [bool(re.fullmatch(pattern, line)) for line in waits] == [True], "no run works on the store"
    states = partial(task_states, prefect, run_id)
    prefect.wait(lambda: not {"RUNNING", "PENDING"} & states(), "they have ended", 60)
    assert "CRASHED" in states()
