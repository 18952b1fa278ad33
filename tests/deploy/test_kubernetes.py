"""The manifests for Kubernetes, KubeRay and Prefect's charts against schemas; nothing is applied."""

import copy
import json
import re
import shlex
from typing import Any

import jsonschema
import kubernetes_validate
import pytest

from tests.deploy import kuberay
from tests.deploy.manifests import KUBERNETES, load, walk

RELEASE = "1.34"  # of Kubernetes: the schemas of fields that are used here have been the same for years
OBJECTS = ("storage", "networkpolicy", "deployments")
RAY = {"raycluster": "RayCluster", "rayjob": "RayJob"}
VALUES = ("prefect-server-values", "prefect-worker-values")
CHARTS = ((VALUES[0], "server"), (VALUES[1], "worker"))


def read(name: str) -> dict[str, Any]:
    return load(f"kubernetes/{name}.yaml")


def accept(said: dict[str, Any]) -> None:
    """Validate an object; an unknown field is an error."""
    kubernetes_validate.validate(said, RELEASE, strict=True)


def pods(said: Any) -> list[dict[str, Any]]:
    """Every template of pods in an object of Ray's."""
    return [
        mapping[key]
        for mapping in walk(said)
        for key in ("template", "submitterPodTemplate")
        if key in mapping
    ]


def autoscaler() -> dict[str, Any]:
    """The container that KubeRay adds to the pod of the head, as far as our options decide."""
    options = {"image", "imagePullPolicy", "resources", "securityContext", "env", "volumeMounts"}
    ours = of_ray("raycluster")["autoscalerOptions"]
    return {"name": "autoscaler", "image": "image"} | {key: ours[key] for key in options & ours.keys()}


def of_ray(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = read(name)["spec"]
    return spec if name == "raycluster" else spec["rayClusterSpec"]


def deployment(values: dict[str, Any], part: str) -> dict[str, Any]:
    """The deployment with the fields of a chart's values that the chart passes on unchanged."""
    ours = values[part]
    container = {
        "name": part,
        "image": "image",
        "command": ours["command"],
        "args": ours["args"],
        "env": ours.get("env", []) + ours.get("extraEnvVars", []),
        "resources": ours["resources"],
        "volumeMounts": ours.get("extraVolumeMounts", []),
    }
    container["securityContext"] = ours["containerSecurityContext"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        if ours.get(probe, {}).get("enabled"):
            container[probe] = {"httpGet": {"path": "/", "port": 1}} | ours[probe]["config"]
    labels = {"app": "a"} | ours.get("podLabels", {})
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": part},
        "spec": {
            "replicas": ours["replicaCount"],
            "selector": {"matchLabels": {"app": "a"}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [container],
                    "volumes": ours.get("extraVolumes", []),
                    "securityContext": ours["podSecurityContext"],
                },
            },
        },
    }


def test_every_file_is_looked_at_by_one_of_these_tests() -> None:
    assert {path.stem for path in KUBERNETES.iterdir()} == {*OBJECTS, *RAY, *VALUES}


@pytest.mark.parametrize("name", OBJECTS)
def test_kubernetes_accepts_its_own_objects(name: str) -> None:
    accept(read(name))


def test_a_field_that_kubernetes_does_not_know_is_found() -> None:
    wrong = read("storage")
    wrong["spec"]["accessMode"] = wrong["spec"].pop("accessModes")
    with pytest.raises(kubernetes_validate.ValidationError):
        accept(wrong)


@pytest.mark.parametrize(("name", "kind"), RAY.items())
def test_kuberay_knows_every_field(name: str, kind: str) -> None:
    jsonschema.validate(read(name), kuberay.schema(kind))


@pytest.mark.parametrize(
    ("field", "wrong"), [("headGroupSpecs", {}), ("rayVersion", 2.6), ("authOptions", {"mode": "tokens"})]
)
def test_a_slip_in_an_object_of_ray_is_found(field: str, wrong: Any) -> None:
    said = copy.deepcopy(read("raycluster"))
    said["spec"][field] = wrong
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(said, kuberay.schema("RayCluster"))


@pytest.mark.parametrize(("name", "count"), [("raycluster", 2), ("rayjob", 3)])
def test_kubernetes_accepts_the_pods_of_ray(name: str, count: int) -> None:
    templates = pods(read(name))
    assert len(templates) == count
    for template in templates:
        accept({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "a"}, "template": template})


def test_kubernetes_accepts_the_container_of_the_autoscaler() -> None:
    template = {"spec": {"containers": [autoscaler()]}}
    accept({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "a"}, "template": template})


@pytest.mark.parametrize(("name", "part"), CHARTS)
def test_kubernetes_accepts_what_the_charts_hand_on(name: str, part: str) -> None:
    accept(deployment(read(name), part))


def test_a_ray_job_runs_on_the_same_cluster_as_a_schedule() -> None:
    assert of_ray("rayjob") == of_ray("raycluster")


def every_pod() -> list[dict[str, Any]]:
    """The specification of every pod that our files describe; that of the head with its autoscaler."""
    templates = [*pods(read("rayjob")), *pods(read("raycluster")), *pods(read("deployments"))]
    templates += [deployment(read(name), part)["spec"]["template"] for name, part in CHARTS]
    specs: list[dict[str, Any]] = [copy.deepcopy(template["spec"]) for template in templates]
    for spec in specs:
        if spec["containers"][0]["name"] == "ray-head":
            spec["containers"].append(autoscaler())
    return specs


def test_every_pod_keeps_to_the_standard_restricted() -> None:
    """Pod Security Standards: a namespace that enforces `restricted` admits all pods."""
    volumes = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim"}
    for spec in every_pod():
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] != 0
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not spec.keys() & {"hostNetwork", "hostPID", "hostIPC"}
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert "privileged" not in context
            assert not any("hostPort" in port for port in container.get("ports", []))
        for volume in spec.get("volumes", []):
            assert volume.keys() - {"name"} <= {*volumes, "projected", "secret"}


def test_only_the_autoscaler_has_access_to_kubernetes() -> None:
    path = "/var/run/secrets/kubernetes.io/serviceaccount"
    for template in [*pods(read("rayjob")), *pods(read("deployments"))]:
        spec = template["spec"]
        assert spec["automountServiceAccountToken"] is False
        mounts = [mount for container in spec["containers"] for mount in container["volumeMounts"]]
        assert path not in {mount["mountPath"] for mount in mounts}
    (mount,) = [mount for mount in autoscaler()["volumeMounts"] if mount["mountPath"] == path]
    head = of_ray("raycluster")["headGroupSpec"]["template"]["spec"]
    (volume,) = [volume for volume in head["volumes"] if volume["name"] == mount["name"]]
    assert [source for sources in volume["projected"]["sources"] for source in sources] == [
        "serviceAccountToken",
        "configMap",
        "downwardAPI",
    ]


def test_what_is_written_goes_to_volumes_that_are_there() -> None:
    for spec in every_pod():
        volumes = {volume["name"] for volume in spec["volumes"]} if "volumes" in spec else set()
        mounts = {
            mount["mountPath"]: mount["name"]
            for container in spec["containers"]
            for mount in container["volumeMounts"]
        }
        assert set(mounts.values()) == volumes
        assert "/tmp" in mounts or spec["containers"][0]["name"] in dict(CHARTS).values()


def test_every_pod_of_ray_has_probes_and_bounds() -> None:
    for template in pods(of_ray("raycluster")):
        (container,) = template["spec"]["containers"]
        assert {"livenessProbe", "readinessProbe"} <= container.keys()
        assert container["resources"]["limits"].keys() == {"cpu", "memory"}


def test_the_head_takes_no_work_and_workers_have_room_to_grow() -> None:
    assert of_ray("raycluster")["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    (group,) = of_ray("raycluster")["workerGroupSpecs"]
    assert group["minReplicas"] <= group["replicas"] < group["maxReplicas"]


def test_the_autoscaler_replaces_pods_instead_of_restarting_them() -> None:
    cluster = of_ray("raycluster")
    assert cluster["enableInTreeAutoscaling"] is True
    assert cluster["autoscalerOptions"]["version"] == "v2"
    for group in cluster["workerGroupSpecs"]:
        assert group["template"]["spec"]["restartPolicy"] == "Never"


def test_ray_knows_the_parameters_of_its_start() -> None:
    from ray.scripts.scripts import start

    known = {option.removeprefix("--") for parameter in start.params for option in parameter.opts}
    given = [
        mapping["rayStartParams"] for mapping in walk(of_ray("raycluster")) if "rayStartParams" in mapping
    ]
    assert len(given) == 2
    for parameters in given:
        assert parameters.keys() <= known


def test_a_ray_job_ends_cleans_up_and_has_a_deadline() -> None:
    spec = read("rayjob")["spec"]
    assert spec["shutdownAfterJobFinishes"] is True
    assert spec["ttlSecondsAfterFinished"] < spec["activeDeadlineSeconds"]
    assert spec["backoffLimit"] >= 1


def test_the_command_line_understands_the_entrypoint_of_a_ray_job() -> None:
    from flows.cli import app

    program, role, sweep, *options = shlex.split(read("rayjob")["spec"]["entrypoint"])
    assert (program, role, sweep) == ("role", "sweep", "quickstart")
    known = {option for parameter in app.command("run").params for option in parameter.opts}
    assert {option for option in options if option.startswith("--")} <= known


def test_only_members_reach_ray_and_all_of_them_are_known() -> None:
    policy = read("networkpolicy")["spec"]
    member = policy["podSelector"]["matchLabels"]
    assert policy["policyTypes"] == ["Ingress"]
    inside, outside = policy["ingress"]
    assert inside == {"from": [{"podSelector": {"matchLabels": member}}]}
    assert [port["port"] for port in outside["ports"]] == [8265]
    for template in pods(of_ray("raycluster")):
        assert member.items() <= template["metadata"]["labels"].items()
    assert member.items() <= read("prefect-worker-values")["worker"]["podLabels"].items()
    submitter = read("rayjob")["spec"]["submitterPodTemplate"]["metadata"]["labels"]
    assert {"podSelector": {"matchLabels": {"privsweep/ray": submitter["privsweep/ray"]}}} in outside["from"]


def test_claims_and_secrets_are_those_that_the_readme_makes() -> None:
    readme = (KUBERNETES.parent / "README.md").read_text().replace("\\\n", "")
    made = set(re.findall(r"kubectl create secret generic (\S+)", readme))
    text = json.dumps([read(name) for name in (*RAY, *VALUES, "deployments")])
    used = set(re.findall(r'"(?:secretName|existingSecret)": "([^"]+)"', text))
    used |= set(re.findall(r'"secretKeyRef": {"name": "([^"]+)"', text))
    used.add(read("prefect-server-values")["secret"]["name"])
    assert used == made
    keys = set(re.findall(r"secret generic (\S+)\s+--from-literal=([\w-]+)=", readme))
    used_keys = {
        (mapping["secretKeyRef"]["name"], mapping["secretKeyRef"]["key"])
        for name in (*RAY, *VALUES, "deployments")
        for mapping in walk(read(name))
        if "secretKeyRef" in mapping
    }
    assert used_keys <= keys
    # Names of keys that the operator and the charts look for.
    assert keys == {
        ("privsweep-ray-token", "auth_token"),
        ("privsweep-prefect", "auth-string"),
        ("privsweep-database", "connection-string"),
    }
    assert set(re.findall(r'"claimName": "([^"]+)"', text)) == {read("storage")["metadata"]["name"]}


def test_the_worker_joins_the_cluster_and_asks_the_server_that_are_described() -> None:
    worker, server = (read(name) for name in reversed(VALUES))
    given = {one["name"]: one.get("value") for one in worker["worker"]["extraEnvVars"]}
    cluster = read("raycluster")["metadata"]["name"]
    assert given["RAY_ADDRESS"] == f"{cluster}-head-svc:6379"
    assert worker["worker"]["args"][-1] == worker["worker"]["config"]["workPool"]
    port = server["service"]["port"]
    assert worker["worker"]["selfHostedServerApiConfig"]["apiUrl"] == f"http://prefect-server:{port}/api"
    assert f"{port}/api" in server["server"]["uiConfig"]["prefectUiApiUrl"]
