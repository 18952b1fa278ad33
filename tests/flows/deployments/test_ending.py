"""The state in which a deployed run ends, without a server."""

import pytest
from prefect.client.schemas.objects import StateType

from flows.deployments.flow import WITH_FAILURES, _ending
from flows.runs.run import RunReport
from flows.runs.status import Coverage


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
