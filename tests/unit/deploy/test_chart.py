"""The Helm chart: what it renders is valid, closed, and starts groupwatch as it would be started there."""

import importlib
import json
import os
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from streaming.devkit.kafka import free_ports
from tests.unit.deploy.rendered import (
    CHART,
    ROOT,
    TOOLS,
    VALUES,
    Object,
    Placed,
    data,
    helm,
    kubernetes_schemas,
    objects,
    of_kind,
    operator_schemas,
    pods,
    text,
    tool,
)
from tests.unit.deploy.started import STARTED_WITHIN_S, first_answer

KUBERNETES = ("v1.25.0", "v1.37.0")
"""The oldest that Chart.yaml admits, and the newest whose schemas are known here."""

values = pytest.mark.parametrize("name", VALUES)


def test_rules_and_dashboards_are_those_of_deploy() -> None:
    """``make chart`` copies them, and no template names one."""
    copies = {file.relative_to(CHART / "files"): file.read_text() for file in CHART.glob("files/*/*")}
    originals = [*(ROOT / "deploy").glob("grafana/*.json"), *(ROOT / "deploy").glob("prometheus/*-rules.yml")]

    assert copies == {file.relative_to(ROOT / "deploy"): file.read_text() for file in originals}


def test_the_chart_has_the_projects_version() -> None:
    """It names the image by it."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert (chart["version"], chart["appVersion"]) == (project["version"], project["version"])


def test_every_value_is_tried_and_has_a_schema() -> None:
    """By one of the sets of values here."""
    known = set(yaml.safe_load((CHART / "values.yaml").read_text()))
    tried = {key for file in VALUES.values() for key in yaml.safe_load(file.read_text())}
    described = set(json.loads((CHART / "values.schema.json").read_text())["properties"])

    assert known - tried == {"terminationGracePeriodSeconds", "tmpSizeLimit", "probes", "securityContext"}
    assert described == known | {"global"}


@values
def test_helm_finds_nothing_to_complain_of(name: str) -> None:
    """Neither an error nor, strictly, a warning."""
    done = helm("lint", "--strict", str(CHART), "-f", str(VALUES[name]))

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_accepts_every_object(version: str, tmp_path: Path) -> None:
    """No key is unknown, no type wrong; the operators' kinds by their own definitions."""
    kubernetes_schemas(version, tmp_path)
    operator_schemas(tmp_path)
    every = [one for name in VALUES for one in objects(name)]

    done = subprocess.run(
        [
            tool("kubeconform"), "-strict", "-summary", "-output", "json", "-skip", "SparkApplication",
            "-schema-location", f"{tmp_path}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json", "-",
        ],
        input="\n---\n".join(map(text, VALUES)), capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    counted = json.loads(done.stdout)["summary"]
    assert counted["valid"] == len(every) - len(of_kind("SparkApplication", every)) > 40
    assert counted["skipped"] == len(of_kind("SparkApplication", every))


@pytest.mark.parametrize("name", [name for name in VALUES if name.startswith("spark")])
def test_the_spark_operator_understands_all_of_a_spark_application(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its own types read and write again is what was rendered."""
    data("python/kubeflow_spark_api")
    monkeypatch.syspath_prepend(str(TOOLS / "python"))
    models = importlib.import_module("kubeflow_spark_api.models")
    (application,) = of_kind("SparkApplication", objects(name))

    assert models.SparkV1beta2SparkApplication.from_dict(application).to_dict() == application


@values
def test_the_configuration_arrives_as_given(name: str) -> None:
    """The user's options over the chart's own, and no other change."""

    def merged(ours: Any, theirs: Any) -> Any:
        if not (isinstance(ours, dict) and isinstance(theirs, dict)):
            return theirs
        return ours | {key: merged(ours.get(key), value) for key, value in theirs.items()}

    defaults = yaml.safe_load((CHART / "values.yaml").read_text())["config"]
    given = yaml.safe_load(VALUES[name].read_text())["config"]
    found = [one["data"] for one in of_kind("ConfigMap", objects(name)) if "groupwatch.yaml" in one["data"]]

    assert [yaml.safe_load(one["groupwatch.yaml"]) for one in found] == [merged(defaults, given)]


@values
def test_check_config_accepts_the_rendered_configuration(name: str, tmp_path: Path) -> None:
    """With the container's own environment and files."""
    placed = Placed(objects(name), tmp_path)
    file = placed.text("/etc/groupwatch/groupwatch.yaml")

    done = _groupwatch(["check-config", file], placed.environment())

    assert done.returncode == 0, done.stdout + done.stderr
    assert "is fine: prod-eu" in done.stdout


def _groupwatch(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "streaming", *arguments],
        env=_here(environment), cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def _here(environment: dict[str, str]) -> dict[str, str]:
    """Return a container's environment with what its image brings, as this machine has it."""
    brought = {
        name: os.environ[name] for name in ("PATH", "JAVA_HOME", "JAVA_TOOL_OPTIONS") if name in os.environ
    }
    return {**brought, "PYTHONPATH": str(ROOT), "GROUPWATCH_CACHE": str(ROOT / ".cache"), **environment}


@values
def test_pods_are_closed(name: str) -> None:
    """No root, no privilege, nothing to write but volumes, and no account of the cluster without need."""
    for pod in pods(objects(name)):
        spec, container = pod.spec, pod.container
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] > 0
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
        }
        assert "/tmp" in {one["mountPath"] for one in container["volumeMounts"]}  # noqa: S108
        is_spark_driver = container["name"] == "spark-kubernetes-driver"
        assert spec.get("automountServiceAccountToken", True) is is_spark_driver


@values
def test_whoever_selects_selects_the_right_pods(name: str) -> None:
    """The service and the budget the driver, the network policy all, the monitor the service."""
    found = objects(name)
    driver, *executors = (set(pod.labels.items()) for pod in pods(found))
    (service,) = of_kind("Service", found)

    for selector in [service["spec"]["selector"], *_selectors("PodDisruptionBudget", "selector", found)]:
        assert set(selector.items()) <= driver
        assert not any(set(selector.items()) <= labels for labels in executors)
    for selector in _selectors("NetworkPolicy", "podSelector", found):
        assert all(set(selector.items()) <= labels for labels in (driver, *executors))
    for selector in _selectors("ServiceMonitor", "selector", found):
        assert set(selector.items()) <= set(service["metadata"]["labels"].items())
    ports = {one["name"] for one in pods(found)[0].container["ports"]}
    assert {one["targetPort"] for one in service["spec"]["ports"]} <= ports


def _selectors(kind: str, key: str, found: list[Object]) -> list[Object]:
    return [one["spec"][key]["matchLabels"] for one in of_kind(kind, found)]


@values
def test_a_claim_is_made_where_none_is_named(name: str) -> None:
    """And what the pod mounts is one that exists."""
    found = objects(name)
    made = {one["metadata"]["name"] for one in of_kind("PersistentVolumeClaim", found)}
    mounted = {
        one["persistentVolumeClaim"]["claimName"]
        for pod in pods(found)
        for one in pod.spec["volumes"]
        if "persistentVolumeClaim" in one
    }

    assert mounted - made == ({"watcher-data"} if name == "existing_secret" else set())
    assert made <= mounted


def test_a_shared_checkpoint_is_one_volume_for_all_pods() -> None:
    """Executors write the state of their tasks into it."""
    driver, executor = pods(objects("spark_operator_volume"))

    for pod in (driver, executor):
        assert {"name": "data", "mountPath": "/var/lib/groupwatch"} in pod.container["volumeMounts"]
        assert {"name": "data", "persistentVolumeClaim": {"claimName": "groupwatch"}} in pod.spec["volumes"]


def test_settings_of_spark_are_texts_and_stand_beside_ours() -> None:
    """Large numbers keep their digits; the image has the module that workers are forked from."""
    (application,) = of_kind("SparkApplication", objects("spark_operator"))

    assert application["spec"]["sparkConf"] == {
        "spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.4.2",
        "spark.task.maxFailures": "8",
        "spark.buffer.size": "16000000",
        "spark.python.daemon.module": "streaming.workers.daemon",
    }
    assert application["spec"]["hadoopConf"]["fs.s3a.path.style.access"] == "true"


def test_the_rules_reach_prometheus_as_they_are() -> None:
    """Its templates are not Helm's."""
    rules = {one["metadata"]["name"]: one["spec"] for one in of_kind("PrometheusRule", objects("everything"))}
    files = sorted((ROOT / "deploy/prometheus").glob("*-rules.yml"))

    assert len(rules) == len(files) == 2
    for (name, spec), file in zip(sorted(rules.items()), files, strict=True):
        assert name.endswith(file.stem)
        assert spec == yaml.safe_load(file.read_text())


def test_with_tls_probes_and_prometheus_speak_it() -> None:
    """Probes need no login; Prometheus has one."""
    (container,) = (pod.container for pod in pods(objects("login")))
    probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    (monitor,) = of_kind("ServiceMonitor", objects("login"))
    (endpoint,) = monitor["spec"]["endpoints"]
    plain = pods(objects("minimal"))[0].container["livenessProbe"]["httpGet"]

    assert {one["scheme"] for one in probes} == {"HTTPS"}
    assert {one["path"] for one in probes} == {"/healthz", "/ready"}
    assert endpoint["scheme"] == "https"
    assert endpoint["authorization"] == {"credentials": {"name": "groupwatch-users", "key": "SCRAPE_TOKEN"}}
    assert endpoint["tlsConfig"]["serverName"] == "groupwatch.monitoring.svc"
    assert plain["scheme"] == "HTTP"


@pytest.mark.parametrize(
    ("name", "sets", "files"),
    [
        ("login", (), {"groupwatch-self-rules"}),
        ("login", ("prometheusRule.alertsOfGroups=true",), {"groupwatch-self-rules", "groupwatch-rules"}),
        ("everything", ("prometheusRule.alertsOfGroups=false",), {"groupwatch-self-rules"}),
    ],
)
def test_nobody_is_told_twice(name: str, sets: tuple[str, ...], files: set[str]) -> None:
    """Where groupwatch tells Alertmanager, Prometheus tells only of groupwatch itself."""
    rules = [one["metadata"]["name"] for one in of_kind("PrometheusRule", objects(name, *sets))]

    assert {one[one.rindex("groupwatch-") :] for one in rules} == files


@pytest.mark.parametrize(
    ("name", "sets", "sentence"),
    [
        ("login", "serviceMonitor.authorization=null", "asks for a login"),
        ("spark_operator_minimal", "config.checkpoint=/var/lib/groupwatch/checkpoint", "a local folder"),
        ("spark_operator_minimal", "config.checkpoint=file:///shared", "checkpoint is a local folder"),
        ("spark_operator_minimal", r"config.spark.spark\.master=local[2]", "sets spark.master"),
        ("spark_operator_volume", "persistence.enabled=false", "persistence.enabled"),
        ("minimal", "config.http.host=127.0.0.1", "loopback"),
        ("minimal", "config.clusters=null", "clusters"),
        ("minimal", "config.http.port=0", "port"),
        ("minimal", "replicas=2", "replicas"),
        ("minimal", "image.digest=latest", "digest"),
        ("minimal", "secrets.values.PASSWORD=12345678", "PASSWORD"),
        ("minimal", "mode=daemonSet", "mode"),
    ],
)  # fmt: skip
def test_values_that_cannot_work_are_refused(name: str, sets: str, sentence: str) -> None:
    """Before anything is installed, and with the reason."""
    done = helm("template", "groupwatch", str(CHART), "-f", str(VALUES[name]), "--set", sets)

    assert done.returncode != 0
    assert sentence in done.stderr


@pytest.mark.spark
def test_the_rendered_command_runs_until_it_is_told_to_end(tmp_path: Path) -> None:
    """Without any broker it answers its liveness probe, is not ready, says why, and ends at a SIGTERM.

    A service manager hears the same.
    """
    (port,) = free_ports(1)
    placed = Placed(objects("minimal", f"config.http.port={port}", "config.http.host=127.0.0.2"), tmp_path)
    container = pods(objects("minimal"))[0].container
    assert container["command"] == ["groupwatch"]
    command = [sys.executable, "-m", "streaming", *placed.arguments()]
    log = tmp_path / "log"
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify"))
    manager.settimeout(STARTED_WITHIN_S)
    environment = _here(placed.environment()) | {"NOTIFY_SOCKET": str(tmp_path / "notify")}

    with log.open("wb") as writing:
        process = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=writing, stderr=writing)
    try:
        healthy = first_answer(
            f"http://127.0.0.2:{port}{container['livenessProbe']['httpGet']['path']}", process
        )
        ready = httpx.get(f"http://127.0.0.2:{port}{container['readinessProbe']['httpGet']['path']}")
        status = manager.recv(4096).decode()
        process.terminate()
        code = process.wait(timeout=container_grace_s())
    finally:
        process.kill()
        process.wait()
    with manager:
        later = _received(manager)

    assert healthy.status_code == 200, log.read_text()
    assert ready.status_code == 503
    assert "prod-eu" in ready.text
    assert code == 0, log.read_text()
    assert status.startswith("STATUS=prod-eu: "), status
    assert "READY=1" not in later
    assert "STOPPING=1" in later


def _received(manager: socket.socket) -> str:
    """Return all that lies in a socket."""
    manager.setblocking(False)
    found = []
    while True:
        try:
            found.append(manager.recv(4096).decode())
        except BlockingIOError:
            return "\n".join(found)


def container_grace_s() -> float:
    """Return the seconds that Kubernetes gives a pod to end."""
    seconds: float = pods(objects("minimal"))[0].spec["terminationGracePeriodSeconds"]
    return seconds
