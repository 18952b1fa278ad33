"""Files of deploy/ agree with one another, with the lock, with Prefect and Ray, and with their README."""

import copy
import re
import runpy
import subprocess
from typing import Any

import pytest

from flows.deployments import named
from flows.spec.sweep import embedded
from flows.spec.sweep import load as load_sweep
from privcore.numerics.compiled import SHIPPED
from tests.deploy.containerfile import read, variables
from tests.deploy.manifests import (
    DEPLOY,
    ELSEWHERE,
    IMAGE,
    PINNED,
    REPOSITORY,
    VERSION,
    environment,
    load,
    manifests,
    walk,
)

README = (DEPLOY / "README.md").read_text()
YAMLS = [name for name in manifests() if name.endswith(".yaml")]
STAGES = read(DEPLOY / "Containerfile")
SHELL = {
    "PATH",
    "TMPDIR",
    "PYTHONSAFEPATH",
    "PYTHONUNBUFFERED",
    "PIP_NO_CACHE_DIR",
    "PIP_DISABLE_PIP_VERSION_CHECK",
}
PRIVSWEEP = {"PRIVSWEEP_COMMIT", "PRIVSWEEP_ROOT", SHIPPED}
DATABASE = r"docker\.io/library/postgres:17\.\d+-bookworm@sha256:[0-9a-f]{64}"
OTHERS = {"DO_NOT_TRACK", "POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD"}  # conventions of their images


def images(name: str) -> list[str]:
    """Every image that a file names, as name:tag."""
    found = []
    for mapping in walk(load(name)):
        if isinstance(image := mapping.get("image"), str):
            found.append(image)
        elif isinstance(image, dict):
            found.append(f"{image['repository']}:{image['prefectTag']}")
    return found


def code(name: str) -> str:
    """A file without its comments."""
    return re.sub(r"(^|\s)#.*", "", (DEPLOY / name).read_text())


def lock(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", text, re.MULTILINE))


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


# --------------------------------------------------------------------------------------------- versions


@pytest.mark.parametrize("name", [name for name in YAMLS if images(name)])
def test_every_image_is_ours_or_that_of_the_database(name: str) -> None:
    foreign = {image for image in images(name) if image != IMAGE}
    assert all(re.fullmatch(DATABASE, image) for image in foreign), foreign


def test_the_image_and_the_readme_name_the_version_of_the_package() -> None:
    (label,) = re.findall(r'image\.version="([^"]+)"', (DEPLOY / "Containerfile").read_text())
    assert label == VERSION
    for name in ("README.md", "Containerfile"):
        assert set(re.findall(r"privsweep:(\d[\w.]*\w)", (DEPLOY / name).read_text())) == {VERSION}


def test_the_ray_of_clusters_is_that_of_the_lock() -> None:
    versions = {
        mapping["rayVersion"] for name in YAMLS for mapping in walk(load(name)) if "rayVersion" in mapping
    }
    assert versions == {PINNED["ray"]}


def test_the_image_installs_what_is_tested_and_what_the_dashboard_needs() -> None:
    installs = lock((DEPLOY / "image.lock").read_text())
    assert {name: installs[name] for name in installs.keys() & PINNED.keys()} == {
        name: PINNED[name] for name in installs.keys() & PINNED.keys()
    }
    assert {"ray", "prefect", "duckdb", "s3fs", "asyncpg", "aiohttp-cors", "opencensus"} <= installs.keys()
    assert not {"pytest", "selenium", "moto", "sphinx"} & installs.keys()
    for block in re.split(r"\n(?=[a-z])", (DEPLOY / "image.lock").read_text())[1:]:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block.splitlines()[0]


@pytest.mark.parametrize("name", manifests())
def test_nothing_is_the_latest_and_nothing_is_piped_into_a_shell(name: str) -> None:
    text = (DEPLOY / name).read_text()
    assert "latest" not in text
    assert not re.search(r"(curl|wget)\b.*\|\s*(ba)?sh\b", text)


# ------------------------------------------------------------------------------------------------ ports


def test_one_port_has_one_number_everywhere() -> None:
    role = (DEPLOY / "role").read_text()
    numbers = dict(re.findall(r'^([A-Z]+)_PORT="?(?:\$\{\w+:-)?(\d+)', role, re.MULTILINE))
    assert numbers == {
        "SERVER": "4200",
        "WORKER": "8080",
        "HEAD": "6379",
        "DASHBOARD": "8265",
        "AGENT": "52365",
    }
    table = set(re.findall(r"^\| (\d+) \|", section("Ports"), re.MULTILINE))
    assert table == {*numbers.values(), "5432"}
    for name in YAMLS:
        named = re.findall(
            r"(?:[pP]ort|:// *[\w.-]+|head(?:-svc)?|HEAD_IP|127\.0\.0\.1)[=:\"]+ ?(\d{4,5})\b", code(name)
        )
        assert set(named) <= table, name


def test_the_readme_says_which_ports_compose_publishes() -> None:
    published = re.findall(r"^\| (\d+) \|.*\| on 127\.0\.0\.1 \|$", section("Ports"), re.MULTILINE)
    ports = [
        port for service in load("compose.yaml")["services"].values() for port in service.get("ports", [])
    ]
    assert ports == [f"127.0.0.1:{port}:{port}" for port in published]


def test_addresses_in_compose_are_services_and_their_ports() -> None:
    services = load("compose.yaml")["services"]
    given = environment(services)
    assert given["RAY_ADDRESS"] == "ray-head:6379"
    assert given["PREFECT_API_URL"] == "http://prefect-server:4200/api"
    assert given["PREFECT_SERVER_DATABASE_HOST"] in services
    assert {"ray-head", "prefect-server"} <= services.keys()


# ------------------------------------------------------------------------------- settings of Prefect, Ray


@pytest.fixture(scope="module")
def known() -> set[str]:
    """Names of environment variables that Prefect, Ray, numba or we read."""
    import numba
    import ray
    from prefect.settings import Settings
    from prefect.settings.legacy import _get_settings_fields

    names = set(_get_settings_fields(Settings)) | SHELL | OTHERS | PRIVSWEEP
    names |= {f"NUMBA_{setting}" for setting in vars(numba.config)}
    folder = next(iter(ray.__path__))
    command = [
        "grep",
        "-rhoE",
        "--include=*.py",
        r"\bRAY_[A-Z_]+\b",
        f"{folder}/_private",
        f"{folder}/_common",
    ]
    return names | set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("name", YAMLS)
def test_every_variable_in_a_manifest_is_read_by_somebody(name: str, known: set[str]) -> None:
    assert environment(load(name)).keys() <= known


def test_every_variable_of_the_image_is_read_by_somebody(known: set[str]) -> None:
    for stage in STAGES:
        assert variables(stage).keys() <= known
    assert set(re.findall(r"\$\{([A-Z_]+):-", (DEPLOY / "role").read_text())) <= known
    assert set(re.findall(r"^([A-Z_]+)=", (DEPLOY / "example.env").read_text(), re.MULTILINE)) <= {
        *known,
        "PREFECT_AUTH_STRING",  # two settings have it as their value
    }


def test_nothing_sends_usage_statistics() -> None:
    said = {"RAY_USAGE_STATS_ENABLED": "0", "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    assert said.items() <= variables(STAGES[-1]).items()
    for name in YAMLS:
        given = environment(load(name))
        assert {key: given[key] for key in said.keys() & given.keys()}.items() <= said.items()
        assert not environment(load(name)) or said.keys() & given.keys(), name


def test_ray_always_asks_for_a_token() -> None:
    modes = [environment(load(name)).get("RAY_AUTH_MODE") for name in YAMLS]
    assert {mode for mode in modes if mode} == {"token", variables(STAGES[-1])["RAY_AUTH_MODE"]}


def test_workers_poll_the_pool_that_deployments_go_to() -> None:
    worker = load("kubernetes/prefect-worker-values.yaml")["worker"]
    pool = worker["config"]["workPool"]
    assert load("compose.yaml")["services"]["prefect-worker"]["command"] == ["worker", "--pool", pool]
    if (DEPLOY / "prefect.yaml").exists():
        pools = {
            mapping["work_pool"]["name"] for mapping in walk(load("prefect.yaml")) if "work_pool" in mapping
        }
        assert pools == {pool}


# ---------------------------------------------------------------------------------------- Ray's launcher


def launcher() -> dict[str, Any]:
    from ray.autoscaler._private.util import prepare_config

    prepared: dict[str, Any] = prepare_config(copy.deepcopy(load("ray-cluster.yaml")))
    return prepared


def test_ray_accepts_the_file_of_its_launcher() -> None:
    from ray.autoscaler._private.util import validate_config

    prepared = launcher()
    validate_config(prepared)
    assert prepared["max_workers"] == len(prepared["provider"]["worker_ips"])


def test_ray_finds_a_slip_in_the_file_of_its_launcher() -> None:
    import jsonschema
    from ray.autoscaler._private.util import validate_config

    with pytest.raises(jsonschema.ValidationError):
        validate_config(launcher() | {"dockers": {}})


def test_ray_knows_the_options_that_its_launcher_and_our_roles_give() -> None:
    from ray.scripts.scripts import start

    known = {option for parameter in start.params for option in parameter.opts}
    config = load("ray-cluster.yaml")
    commands = [*config["head_start_ray_commands"], *config["worker_start_ray_commands"]]
    commands += re.findall(r"ray start (?:.*\\\n)*.*", (DEPLOY / "role").read_text())
    given = [set(re.findall(r"--[a-z][a-z-]+", command)) for command in commands if "ray start" in command]
    assert len(given) == 5
    for options in given:
        assert options <= known


# ---------------------------------------------------------------------------------------------- the README


def test_the_readme_says_of_every_file_what_it_is_and_what_was_not_checked() -> None:
    table = README.split("\n\n")[2]
    described = set(re.findall(r"`([\w./-]+)`", "".join(re.findall(r"^\|[^|]+\|", table, re.MULTILINE))))
    assert described == {*manifests(), *ELSEWHERE} - {"README.md"}


def test_every_file_that_the_readme_names_is_there() -> None:
    named = set(re.findall(r"deploy/[\w./-]*\w", README)) - {"deploy/.env"}
    for path in named:
        assert (REPOSITORY / path).exists(), path
    for path in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (DEPLOY / path).exists(), path


@pytest.mark.parametrize("name", [name for name in YAMLS if not name.startswith("prefect")])
def test_every_manifest_says_first_that_no_test_starts_it(name: str) -> None:
    comment = (DEPLOY / name).read_text().split("\n\n")[0]
    head = "".join(re.findall(r"^#.*\n", (DEPLOY / name).read_text(), re.MULTILINE)[:8])
    lacking = r"for lack of (a )?(container engine|cluster|machines)"
    assert re.search(rf"[Nn]ot (started|applied|installed) by any test, {lacking}", head)
    assert comment.startswith("#")


def test_two_deployments_are_shipped_without_limits_and_every_embedded_sweep_can_have_one() -> None:
    any_sweep, quickstart = load("prefect.yaml")["deployments"]
    assert (any_sweep["name"], any_sweep.get("schedules")) == ("any-sweep", None)
    assert any_sweep["entrypoint"] == "flows.deployments.scheduled_sweep"
    assert quickstart["name"] == quickstart["parameters"]["sweep"] == "quickstart"
    assert not {"concurrency_limit"} & {*any_sweep, *quickstart}, "a store has one: docs/adr/0019"
    deployment = runpy.run_path(str(DEPLOY / "schedule.py"))["deployment"]
    for name in embedded():
        made = deployment(name, "0 4 * * 1", "Europe/Berlin")
        assert made["entrypoint"] == f"flows.deployments.named.{made['name']}"
        assert made["parameters"] == any_sweep["parameters"] | {"sweep": made["name"]}
        assert made["name"] == load_sweep(name).name
        assert getattr(named, made["name"]).name == f"privsweep-{made['name']}"
