"""Create or update the deployment of one sweep, with a schedule: `python deploy/schedule.py SWEEP [CRON]`.

SWEEP is a TOML file of your own or the name of an embedded sweep, CRON the time, such as "0 4 * * 1". Without
a time, the deployment has no schedule, and an earlier one is removed. The deployment has the settings of
`any-sweep` in prefect.yaml. A file is uploaded: its text is the parameter, so workers on other machines need
no copy, and a later change needs this command again.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from prefect.client.orchestration import get_client

from flows.deployments.named import PREFIX
from flows.spec.sweep import embedded, load
from privcore.errors import PrivsweepError

FILE = Path(__file__).with_name("prefect.yaml")


def deployment(sweep: str, cron: str | None, zone: str) -> dict[str, Any]:
    """Return the entry of a sweep for a file like prefect.yaml.

    Raises:
        PrivsweepError: The sweep is missing or invalid.
    """
    name, known = load(sweep).name, sweep in embedded()
    (shipped,) = (each for each in _shipped()["deployments"] if each["name"] == "any-sweep")
    made: dict[str, Any] = shipped | {
        "name": name,
        "description": f"The embedded sweep {name}" if known else f"The sweep of {Path(sweep).name}",
        "entrypoint": f"flows.deployments.named.{name}" if known else shipped["entrypoint"],
        "parameters": shipped["parameters"] | {"sweep": name if known else Path(sweep).read_text()},
        "schedules": [{"cron": cron, "timezone": zone}] if cron else [],
    }
    return made


def _shipped() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return content


def main() -> int:
    """Deploy the sweep to the server at PREFECT_API_URL; return an exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sweep", metavar="SWEEP")
    parser.add_argument("cron", metavar="CRON", nargs="?")
    parser.add_argument("--timezone", default="Europe/Berlin")
    given = parser.parse_args()
    try:
        made = deployment(given.sweep, given.cron, given.timezone)
    except PrivsweepError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(_shipped() | {"deployments": [made]}, file)
        file.flush()
        command = [
            sys.executable,
            "-m",
            "prefect",
            "--no-prompt",
            "deploy",
            "--all",
            "--prefect-file",
            file.name,
        ]
        code = subprocess.run(command, check=False).returncode
    if not code:
        full_name = f"{PREFIX + made['name'] if given.sweep in embedded() else 'privsweep'}/{made['name']}"
        if not given.cron:
            _remove_schedules(full_name)
        print(f"To start a run now: prefect deployment run {full_name} --watch")
    return code


def _remove_schedules(full_name: str) -> None:
    """Remove the schedules of an earlier call, which `prefect deploy` keeps if there is no new one."""
    with get_client(sync_client=True) as client:
        deployed = client.read_deployment_by_name(full_name)
        for each in deployed.schedules:
            client.delete_deployment_schedule(deployed.id, each.id)
            print(f"Removed the schedule {getattr(each.schedule, 'cron', each.schedule)} of {full_name}.")


if __name__ == "__main__":
    sys.exit(main())
