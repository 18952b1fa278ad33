"""The folder in which a deployed run works, and the state in which it ends, without a server."""

from pathlib import Path

import pytest
from prefect.client.schemas.objects import StateType

from flows.deployments.flow import ROOT, _ending, _enter_root
from flows.runs.method_runs import WITH_FAILURES
from flows.runs.run import RunReport
from flows.runs.status import Coverage
from privcore.errors import DomainError


@pytest.mark.parametrize(
    ("statuses", "name", "message"),
    [
        ({"ok": 3, "not_applicable": 1}, "Completed", "4 points, 2 computed in 5.0 s."),
        ({"ok": 3, "timeout": 1}, WITH_FAILURES, "1 failed (1 timeout)"),
    ],
)
def test_a_run_with_failed_points_is_completed_with_failures(
    statuses: dict[str, int], name: str, message: str
) -> None:
    now = Coverage(sweep="small", total=4, statuses=statuses)
    state = _ending(RunReport(now=now, before=2, computed=2, seconds=5.0, store="store"))
    assert (state.type, state.name) == (StateType.COMPLETED, name)
    assert message in str(state.message)


def test_a_run_with_too_many_failed_points_is_failed_and_says_why_first() -> None:
    now = Coverage(sweep="small", total=4, statuses={"ok": 2, "timeout": 2})
    report = RunReport(now=now, before=0, computed=4, seconds=5.0, store="store")
    state = _ending(report, "bins.certified answered no point of bins-epsilon.")
    assert (state.type, state.name) == (StateType.FAILED, "Failed")
    assert str(state.message).startswith("bins.certified answered no point of bins-epsilon. 4 points")
    assert "2 failed (2 timeout): privsweep sql --store store" in str(state.message)


def test_a_run_leaves_the_empty_folder_of_prefect_for_the_root_of_its_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # and back at the end
    (tmp_path / "root").mkdir()
    monkeypatch.setenv(ROOT, str(tmp_path / "root"))
    _enter_root()
    assert Path.cwd() == tmp_path / "root"


@pytest.mark.parametrize("root", ["", ".", "/no/such/folder"])
def test_a_run_does_not_work_in_a_folder_that_prefect_removes(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ROOT, root)
    with pytest.raises(DomainError, match=f"Expected the absolute path of a folder in {ROOT}"):
        _enter_root()
