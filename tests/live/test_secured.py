"""A cluster that asks who we are and proves who it is, watched from another one that takes the outputs."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.devkit.kafka.plan import free_ports
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients.clients import admin_client
from tests.live.support import comparing
from tests.live.support.members import CALM_SESSION_MS
from tests.live.support.scene import Scene
from tests.live.support.stage import Job, Page, Pager, alerts_of, await_that, need_jars, records_of, states_of

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

PASSWORD = "correct horse; battery 'staple'"  # noqa: S105 - of a broker that lives for this test
STORE_PASSWORD = "only-for-this-test"  # noqa: S105 - as above
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="watch" password="{}";'


@dataclass
class Story:
    """What was seen of it."""

    here: set[str]
    """Topics of the watched cluster."""
    there: set[str]
    """Topics of the cluster of the outputs."""
    states: tuple[dict[str, str], dict[str, str]]
    """The brokers' and ours."""
    alerts: list[dict[str, Any]]
    transitions: list[dict[str, Any]]
    lines: list[str]
    pages: list[Page]
    cluster: dict[str, Any]
    said: dict[str, str]
    """Where the job says something -> what it said."""


def _keytool(*arguments: str) -> None:
    done = subprocess.run(["keytool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _certificate(folder: Path) -> tuple[Path, Path]:
    """Return a key store for the broker, and the certificate in it as PEM for whoever shall trust it."""
    store, pem = folder / "broker.p12", folder / "trusted.pem"
    common = (
        "-keystore",
        str(store),
        "-storetype",
        "PKCS12",
        "-storepass",
        STORE_PASSWORD,
        "-alias",
        "broker",
    )
    _keytool(
        *("-genkeypair", "-keyalg", "RSA", "-keysize", "2048", "-validity", "2", "-dname", "CN=broker"),
        *("-ext", "san=ip:127.0.0.1", *common),
    )
    _keytool("-exportcert", "-rfc", "-file", str(pem), *common)
    return store, pem


def secured(kafka: EmbeddedKafka, store: Path) -> str:
    """Give the broker, before it starts, a listener with TLS and passwords; returns its address."""
    port, plan = free_ports(1)[0], kafka.plan
    listener = "listener.name.sasl_ssl"
    properties = {
        "listeners": (
            f"PLAINTEXT://127.0.0.1:{plan.ports[0]},CONTROLLER://127.0.0.1:{plan.controller_ports[0]},"
            f"SASL_SSL://127.0.0.1:{port}"
        ),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN",
        f"{listener}.plain.sasl.jaas.config": (
            f'org.apache.kafka.common.security.plain.PlainLoginModule required user_watch="{PASSWORD}";'
        ),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": STORE_PASSWORD,
    }
    kafka.plan = msgspec.structs.replace(plan, properties={**plan.properties, **properties})
    return f"127.0.0.1:{port}"


def _client(pem: Path, password: str = PASSWORD) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": JAAS.format(password),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(pem),
    }


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    need_jars()
    folder = tmp_path_factory.mktemp("secured")
    store, pem = _certificate(folder)
    watched = EmbeddedKafka(folder / "watched", offsets_partitions=8, heap="384m")
    door = secured(watched, store)
    outputs = EmbeddedKafka(folder / "outputs", offsets_partitions=8, heap="384m")
    more = {
        "clusters": [{"name": "live", "bootstrap_servers": [door], "client": _client(pem)}],
        "output": {"bootstrap_servers": [outputs.bootstrap_servers]},
    }
    with watched, outputs, Pager() as pager:
        watched.create_topic("orders", partitions=4)
        job = Job(door, folder, pager, more=more)
        scene = Scene(watched, job, "full")
        try:
            yield _played(scene, job, pager, outputs.address)
        finally:
            scene.end()
            job.stop()


def _played(scene: Scene, job: Job, pager: Pager, outputs: KafkaAddress) -> Story:
    job.start()
    job.await_ready()
    scene.member("g", "g-0", session_timeout_ms=CALM_SESSION_MS)
    victim = scene.member("g", "g-1")
    await_that(scene.is_stable("g", 2), "g is Stable")
    await_that(lambda: job.states().get("g") == "Stable", "g is seen")
    victim.crash()
    await_that(lambda: _of(list(pager.pages)), "somebody is paged")
    await_that(scene.is_stable("g", 1), "g is Stable again")
    brokers = states_of(scene.admin, ["g"])
    await_that(lambda: job.states() == brokers, f"ours are {brokers}")
    ready = job.get("/ready")
    return Story(
        here=_topics(scene.kafka.address),
        there=_topics(outputs),
        states=(brokers, job.states()),
        alerts=alerts_of(outputs),
        transitions=[one for _, one in records_of(outputs, "groupwatch-transitions")],
        lines=scene.kafka.log_files(1)[0].read_text(errors="replace").splitlines(),
        pages=list(pager.pages),
        cluster={} if ready is None else ready.json()["clusters"][0],
        said=_said(job),
    )


PATHS = (
    *("/", "/metrics", "/healthz", "/ready", "/api/v1/clusters", "/api/v1/groups", "/api/v1/groups/live/g"),
    *("/api/v1/groups/live/g/explain", "/api/v1/alerts", "/api/v1/transitions", "/api/v1/undecodable"),
    "/api/v1/silences",
)


def _said(job: Job) -> dict[str, str]:
    answers = {path: job.get(path) for path in PATHS}
    found = {path: answer.text for path, answer in answers.items() if answer is not None}
    return {**found, "log": job.log.read_text()}


def _of(pages: list[Page]) -> list[Page]:
    return [page for page in pages if page.labels["alertname"] == "SessionTimeout"]


def _topics(address: KafkaAddress) -> set[str]:
    admin = admin_client(address)
    try:
        return {name for name in admin.list_topics() if name.startswith("groupwatch-")}
    finally:
        admin.close()


def test_the_incident_is_told_through_both_clusters(story: Story) -> None:
    """Read with TLS and a password in one cluster, written into the other, and paged."""
    (alert,) = [one for one in story.alerts if one["name"] == "SessionTimeout"]
    assert (alert["group"], alert["revision"]) == ("g", 0)
    assert [one["client_id"] for one in alert["culprits"]] == ["g-1"]
    assert [page.key for page in _of(story.pages)] == [f"{alert['id']}/0"]
    brokers, ours = story.states
    assert ours == brokers == {"g": "Stable"}


def test_every_transition_is_told(story: Story) -> None:
    """What the coordinator logged is what stands in the other cluster."""
    assert comparing.missing_and_extra(story.transitions, comparing.logged(story.lines)) == ([], [])


def test_outputs_live_where_they_were_told_to(story: Story) -> None:
    """The watched cluster has nothing of ours but the events, which its brokers write."""
    assert story.here == {"groupwatch-events"}
    assert story.there >= {"groupwatch-transitions", "groupwatch-alerts", "groupwatch-control"}
    assert story.cluster["error"] == ""


@pytest.mark.parametrize("secret", [PASSWORD, STORE_PASSWORD, "correct horse"])
def test_no_password_is_said(story: Story, secret: str) -> None:
    """Neither by us nor by Spark and its Kafka clients: in the log, the metrics, the API and the page."""
    assert story.said.keys() == {*PATHS, "log"}
    assert [where for where, text in story.said.items() if secret in text] == []
