"""The chart as Helm renders it, and the folder in which a rendered container finds its files."""

import base64
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import certifi
import pytest
import yaml

from tests.unit.alerts.delivery.receivers.twins import certificates

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy" / "helm" / "groupwatch"
TOOLS = ROOT / ".cache" / "tools"
VALUES = {file.stem: file for file in sorted((Path(__file__).parent / "values").glob("*.yaml"))}
"""Sets of values, by name; one says at its top what it is about."""

Object = dict[str, Any]

_KINDS = (
    "configmap", "deployment", "networkpolicy", "persistentvolumeclaim", "poddisruptionbudget", "role",
    "rolebinding", "secret", "service", "serviceaccount",
)  # fmt: skip
"""The kinds of Kubernetes' own that the chart makes; another one has no schema and so fails the test."""

ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "kafka-ca": {"ca.pem": Path(certifi.where()).read_text()},
    "kafka-user": {"KAFKA_USER": "groupwatch", "KAFKA_PASSWORD": "secret"},
    "groupwatch": {},
    "groupwatch-users": {"SCRAPE_TOKEN": "scrape-me-please", "ONCALL_PASSWORD": "on-call-at-night"},
}
"""The Secrets that sets of values name and that the chart does not make."""


def tool(name: str) -> str:
    """Return the path of a tool of ``.ci/deploy-tools``; the test is skipped where it is missing."""
    found = TOOLS / "bin" / name
    chosen = str(found) if found.exists() else shutil.which(name)
    if chosen is None:
        pytest.skip(f"{name} is missing (.ci/deploy-tools installs it)")
    return chosen


def data(name: str) -> Path:
    """Return a file or folder that ``.ci/deploy-tools`` fetched; the test is skipped where it is missing."""
    if not (TOOLS / name).exists():
        pytest.skip(f"{name} is missing (.ci/deploy-tools fetches it)")
    return TOOLS / name


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Helm."""
    return subprocess.run([tool("helm"), *arguments], capture_output=True, text=True, check=False)


@cache
def text(values: str, *sets: str) -> str:
    """Return what Helm makes of a set of values, with further ``name=value`` set."""
    extra = [part for one in sets for part in ("--set", one)]
    done = helm("template", "groupwatch", str(CHART), "-n", "watch", "-f", str(VALUES[values]), *extra)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(values: str, *sets: str) -> list[Object]:
    """Return the same as objects."""
    return [one for one in yaml.safe_load_all(text(values, *sets)) if one]


def of_kind(kind: str, found: Sequence[Object]) -> list[Object]:
    """Return the objects of one kind."""
    return [one for one in found if one["kind"] == kind]


class Pod(NamedTuple):
    """A pod that the chart or the Spark operator starts: its labels and its specification."""

    labels: Mapping[str, str]
    spec: Object

    @property
    def container(self) -> Object:
        """Its only container."""
        (one,) = self.spec["containers"]
        found: Object = one
        return found


def pods(found: Sequence[Object]) -> list[Pod]:
    """Return all pods; the one of the driver is the first."""
    templates = [one["spec"]["template"] for one in of_kind("Deployment", found)]
    for one in of_kind("SparkApplication", found):
        templates += [one["spec"][part]["template"] for part in ("driver", "executor")]
    return [Pod(one["metadata"]["labels"], one["spec"]) for one in templates]


@cache
def _tls() -> Mapping[str, str]:
    """Return a Secret of type kubernetes.io/tls, as cert-manager makes it."""
    with tempfile.TemporaryDirectory() as folder:
        ca, both = certificates(Path(folder), "groupwatch.monitoring.svc")
        text = both.read_text()
        at = text.index("-----BEGIN PRIVATE KEY-----")
        return {"ca.crt": ca.read_text(), "tls.crt": text[:at], "tls.key": text[at:]}


class Placed:
    """A container's mounted files below a folder, and its environment and arguments with these paths."""

    def __init__(self, found: Sequence[Object], folder: Path) -> None:
        """Write what the driver's container mounts."""
        self._found, self._folder, self._pod = found, folder, pods(found)[0]
        mounts = self._pod.container["volumeMounts"]
        paths = sorted((one["mountPath"] for one in mounts), key=len, reverse=True)
        self._mounted = re.compile(rf"(?<![\w/.-])({'|'.join(map(re.escape, paths))})(?![\w.-])")
        for one in mounts:
            self._place(one)

    def text(self, text: str) -> str:
        """Return a text in which each mounted path lies below the folder."""
        return self._mounted.sub(lambda match: f"{self._folder}{match[1]}", text)

    def environment(self) -> dict[str, str]:
        """Return the container's own environment."""
        container = self._pod.container
        found: dict[str, str] = {}
        for one in container.get("envFrom", []):
            found |= self._secret(one["secretRef"]["name"])
        return found | {one["name"]: self.text(one["value"]) for one in container["env"]}

    def arguments(self) -> list[str]:
        """Return the arguments of groupwatch."""
        applications = of_kind("SparkApplication", self._found)
        given = applications[0]["spec"]["arguments"] if applications else self._pod.container["args"]
        return [self.text(one) for one in given]

    def _place(self, mount: Object) -> None:
        (volume,) = (one for one in self._pod.spec["volumes"] if one["name"] == mount["name"])
        target = Path(f"{self._folder}{mount['mountPath']}")
        files = self._files(volume)
        if "subPath" in mount:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(files[mount["subPath"]])
            return
        target.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (target / name).write_text(content)

    def _files(self, volume: Object) -> Mapping[str, str]:
        if "configMap" in volume:
            maps = [
                one for one in of_kind("ConfigMap", self._found) if _name(one) == volume["configMap"]["name"]
            ]
            return {name: self.text(content) for name, content in maps[0]["data"].items()}
        return self._secret(volume["secret"]["secretName"]) if "secret" in volume else {}

    def _secret(self, name: str) -> Mapping[str, str]:
        ours = [one for one in of_kind("Secret", self._found) if _name(one) == name]
        if not ours:
            return _tls() if name == "groupwatch-tls" else ELSEWHERE[name]
        return {key: base64.b64decode(value).decode() for key, value in ours[0]["data"].items()}


def _name(one: Object) -> str:
    name: str = one["metadata"]["name"]
    return name


def kubernetes_schemas(version: str, folder: Path) -> None:
    """Write Kubernetes' own JSON schemas, which refuse unknown keys, into a folder.

    Each is whole in itself: the package's files point to each other by addresses
    that only its own program understands.
    """
    package = data("python/kubernetes_validate/kubernetes-json-schema") / f"{version}-local-strict"
    shared = json.loads((package / "_definitions.json").read_text())["$defs"]
    for file in package.glob("*-v1.json"):
        if file.stem.split("-")[0] in _KINDS:
            schema = json.loads(file.read_text().replace("/api/_definitions.json#", "#"))
            (folder / file.name).write_text(json.dumps(schema | {"$defs": shared}))


def operator_schemas(folder: Path) -> None:
    """Write the same for the kinds of the Prometheus operator, out of its definitions."""
    for file in sorted(data("crds").glob("*.yaml")):
        definition = yaml.safe_load(file.read_text())["spec"]
        for version in definition["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            for inner in _schemas(schema):
                if "properties" in inner and "x-kubernetes-preserve-unknown-fields" not in inner:
                    inner.setdefault("additionalProperties", False)
            # The API server checks metadata by itself, and a definition says nothing of it.
            schema["properties"]["metadata"] = {"type": "object"}
            name = f"{definition['names']['kind'].lower()}-monitoring-{version['name']}.json"
            (folder / name).write_text(json.dumps(schema))


def _schemas(schema: Object) -> Iterator[Object]:
    yield schema
    inner = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for one in inner:
        if isinstance(one, dict):
            yield from _schemas(one)
