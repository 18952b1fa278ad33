"""The shipped automations with the shipped delays: a run that waits for its retry is not dead."""

import re
import time
from collections.abc import Iterator

import pytest

from tests.deploy.prefect_here import PrefectHere, Told

pytestmark = [pytest.mark.soak, pytest.mark.xdist_group("prefect")]

SILENCE = 90  # seconds without a heartbeat after which deploy/automations.yaml calls a run dead


@pytest.fixture
def prefect(tmp_path_factory: pytest.TempPathFactory, told: tuple[Told, str]) -> Iterator[PrefectHere]:
    """A server and a worker with the deployments and automations of `make deploy`."""
    here = PrefectHere(tmp_path_factory.mktemp("retries"))
    try:
        here.start_server()
        here.make_deploy(PRIVSWEEP_WEBHOOK=told[1])
        here.start_worker()
        yield here
    finally:
        here.stop()


def test_a_run_that_waits_for_its_retry_is_not_crashed_and_ends_well(
    prefect: PrefectHere, told: tuple[Told, str]
) -> None:
    obstacle = prefect.root / "file"
    obstacle.write_text("no folder")
    run_id = prefect.start_run("quickstart", sweep="membership-privacy", store="file/store")
    waits = prefect.wait(
        lambda: (run := prefect.run(run_id))["state_name"] == "AwaitingRetry" and run, "it waits"
    )
    began = time.monotonic()
    while (seconds := time.monotonic() - began) < 2.5 * SILENCE:
        state = prefect.run(run_id)["state_name"]
        assert state == "AwaitingRetry", f"{state} after {seconds:.0f} s"
        time.sleep(5)
    obstacle.unlink()
    (prefect.root / "file").mkdir()
    run = prefect.end_of(run_id)
    print(f"\nthe retry ended {time.monotonic() - began:.0f} s after the first attempt")
    assert (run["state_name"], run["run_count"]) == ("Completed", waits["run_count"] + 1)
    assert not told[0], "nothing has failed"


def test_a_run_that_is_cancelled_has_one_such_state_and_one_message_with_its_stored_points(
    prefect: PrefectHere, told: tuple[Told, str]
) -> None:
    run_id = prefect.start_run("quickstart", sweep="lookup", store="cancelled")
    prefect.wait(lambda: list((prefect.root / "cancelled").glob("data/*/*.parquet")), "it has stored points")
    waiting = prefect.start_run("quickstart", sweep="quickstart", store="cancelled")
    prefect.wait(lambda: any(line.startswith("Waiting until") for line in prefect.logs(waiting)), "it waits")
    for each in (waiting, run_id):
        prefect.cli("flow-run", "cancel", each)
        assert prefect.end_of(each)["state_name"] == "Cancelled"
    prefect.wait(lambda: not prefect.below_worker(), "nothing runs below the worker", 60)
    prefect.wait(lambda: any(" lookup " in text for text in told[0]), "a message arrives", 60)
    time.sleep(15)  # the worker looks every three seconds whether the run has ended, and then sets its state
    for each in (waiting, run_id):
        assert [name for name, _ in prefect.history(each)][-2:] == ["Cancelling", "Cancelled"]
    assert len([text for text in told[0] if " quickstart " in text]) == 1, "of the run that waited"
    (text,) = (text for text in told[0] if " lookup " in text)
    assert re.search(r"lookup \S+ \S+ UTC: Stopped: \d+ of \d+ points are stored: Cancelled", text)
