"""The fields of KubeRay's RayCluster and RayJob that our manifests use, and their allowed values.

Written from the API reference of KubeRay 1.6 and 1.7, narrower than the definitions that the operator
brings: other fields are refused, so that a typing error in a name is found without a cluster.
"""

from typing import Any

_NAME = {
    "type": "string",
    "pattern": "^[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?$",
}  # services get longer ones from it
_LABELS = {"type": "object", "additionalProperties": {"type": "string"}}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
_POD = {  # checked by the schema of Kubernetes
    "type": "object",
    "required": ["spec"],
    "properties": {"metadata": {"type": "object"}, "spec": {"type": "object", "required": ["containers"]}},
    "additionalProperties": False,
}
_PARAMETERS = {"type": "object", "additionalProperties": {"type": "string"}}  # numbers, too, are strings


def _exactly(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with only these fields."""
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


CLUSTER = _exactly(
    ["headGroupSpec", "rayVersion", "authOptions"],
    rayVersion={"type": "string"},
    enableInTreeAutoscaling={"type": "boolean"},
    autoscalerOptions=_exactly(
        [],
        version={"enum": ["v1", "v2"]},
        idleTimeoutSeconds=_COUNT,
        upscalingMode={"enum": ["Default", "Conservative", "Aggressive"]},
        imagePullPolicy={"enum": ["Always", "IfNotPresent", "Never"]},
        # Fields of a container, checked by the schema of Kubernetes.
        resources={"type": "object"},
        securityContext={"type": "object"},
        env={"type": "array"},
        volumeMounts={"type": "array"},
    ),
    authOptions=_exactly(["mode"], mode={"enum": ["disabled", "token"]}, secretName=_NAME),
    headGroupSpec=_exactly(
        ["rayStartParams", "template"],
        serviceType={"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
        rayStartParams=_PARAMETERS,
        template=_POD,
    ),
    workerGroupSpecs={
        "type": "array",
        "minItems": 1,
        "items": _exactly(
            ["groupName", "rayStartParams", "template", "replicas", "minReplicas", "maxReplicas"],
            groupName=_NAME,
            replicas=_COUNT,
            minReplicas=_COUNT,
            maxReplicas=_COUNT,
            rayStartParams=_PARAMETERS,
            template=_POD,
        ),
    },
)
JOB = _exactly(
    ["entrypoint", "rayClusterSpec", "submissionMode"],
    entrypoint={"type": "string"},
    submissionMode={"enum": ["K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"]},
    shutdownAfterJobFinishes={"type": "boolean"},
    ttlSecondsAfterFinished=_COUNT,
    backoffLimit=_COUNT,
    activeDeadlineSeconds=_COUNT | {"minimum": 1},
    submitterConfig=_exactly([], backoffLimit=_COUNT),
    submitterPodTemplate=_POD,
    rayClusterSpec=CLUSTER,
)


def schema(kind: str) -> dict[str, Any]:
    """Return the schema of a RayCluster or of a RayJob, as far as it is used here."""
    return _exactly(
        ["apiVersion", "kind", "metadata", "spec"],
        apiVersion={"const": "ray.io/v1"},
        kind={"const": kind},
        metadata=_exactly(["name"], name=_NAME, labels=_LABELS),
        spec={"RayCluster": CLUSTER, "RayJob": JOB}[kind],
    )
