"""SIGHUP: what changes while the job runs, what does not, and a file that is wrong."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from streaming.devkit.kafka import EmbeddedKafka
from tests.live.support.kept_world import come_and_go
from tests.live.support.members import CALM_SESSION_MS, Member
from tests.live.support.stage import Job, Pager, alerts_of, await_that, need_jars

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

GROUP = "payments"
CALM = {"rebalance_storm": {"rebalances": 1_000}}
NERVOUS = {"rebalance_storm": {"rebalances": 3}}
GOOD = "groupwatch_config_last_reload_successful"


@dataclass
class Seen:
    """What was seen of it."""

    log: str = ""
    pages: list[tuple[str, str]] = field(default_factory=list)
    """(id, status) as the first receiver had them."""
    keys: list[str] = field(default_factory=list)
    """(id/revision) as the first receiver had them."""
    answer: tuple[int, Any] = (0, None)
    refused: int = 0
    later_pages: list[tuple[str, str]] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)
    good: list[str] = field(default_factory=list)
    """The metric after each file."""


def _told(pager: Pager) -> list[tuple[str, str]]:
    return [(page.key.partition("/")[0], page.status) for page in list(pager.pages)]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    need_jars()
    folder: Path = tmp_path_factory.mktemp("reload")
    found = Seen()
    kafka = EmbeddedKafka(folder / "kafka", offsets_partitions=4, rebalance_delay_ms=300, heap="384m")
    with kafka, Pager() as first, Pager() as second:
        kafka.create_topic("orders", partitions=4)
        job = Job(kafka.bootstrap_servers, folder, first, CALM)
        resident = Member(kafka.bootstrap_servers, GROUP, "resident", session_timeout_ms=CALM_SESSION_MS)

        def reload(what: dict[str, Any] | str, said: str) -> None:
            """Write the file, send the signal, and wait for what the log says."""
            before = job.log.read_text().count(said)
            text = what if isinstance(what, str) else json.dumps({**settings, **what})
            job.config.write_text(text)
            job.reload()
            await_that(lambda: job.log.read_text().count(said) > before, f"the log says {said!r}")
            found.good += [line.split()[1] for line in job.metrics().splitlines() if line.startswith(GOOD)]

        try:
            settings = json.loads(job.config.read_text())
            job.start()
            job.await_ready()
            resident.start()
            await_that(lambda: job.states().get(GROUP) == "Stable", "the group is seen")
            for number in range(4):
                come_and_go(kafka, GROUP, f"calm-{number}")
            reload("clusters: [", "the configuration is as it was")
            reload(
                {"rules": NERVOUS, "http": {"port": 1}}, "the configuration was read again; changed: rules"
            )
            for number in range(4):
                come_and_go(kafka, GROUP, f"nervous-{number}")
            await_that(lambda: _told(first), "the storm is told")
            both = [
                {"name": "pager", "webhook": {"url": first.url}},
                {"name": "second", "webhook": {"url": second.url}},
            ]
            routes = [{"match": {}, "receivers": ["pager", "second"]}]
            reload({"rules": NERVOUS, "receivers": both, "routes": routes}, "changed: receivers, routes")
            await_that(lambda: _told(second), "the new receiver is told what fires")
            answer = httpx.post(f"http://127.0.0.1:{job.port}/-/reload", timeout=40)
            found.answer = (answer.status_code, answer.json())
            job.config.write_text("clusters: [")
            found.refused = httpx.post(f"http://127.0.0.1:{job.port}/-/reload", timeout=40).status_code
            found.log, found.alerts = job.log.read_text(), alerts_of(kafka.address)
            found.keys = first.keys()
            found.pages, found.later_pages = _told(first), _told(second)
            yield found
        finally:
            resident.crash()
            job.stop()


def test_a_wrong_file_changes_nothing(seen: Seen) -> None:
    """The log says why, and a metric that the old configuration holds."""
    assert seen.good == ["0.0", "1.0", "1.0"]
    assert "the configuration is as it was, for the file cannot be used: " in seen.log


def test_rules_change_while_the_job_runs(seen: Seen) -> None:
    """Four rebalances were no storm before, and are one after."""
    assert {(one["name"], one["group"]) for one in seen.alerts} == {("RebalanceStorm", GROUP)}


def test_what_needs_a_restart_is_named(seen: Seen) -> None:
    """The server goes on listening where it did."""
    assert "these changes of the configuration need a restart: http.port" in seen.log


def test_a_request_does_the_same_and_answers(seen: Seen) -> None:
    """What changed, here nothing; a wrong file is refused."""
    assert seen.answer == (200, {"error": "", "changed": [], "needs_restart": []})
    assert seen.refused == 400


def test_a_new_receiver_is_told_what_fires_and_the_old_one_nothing_twice(seen: Seen) -> None:
    """The old one goes on from where it was."""
    (alert_id,) = {one["id"] for one in seen.alerts}
    assert set(seen.later_pages) == {(alert_id, "firing")}
    assert set(seen.pages) == {(alert_id, "firing")}
    assert len(seen.keys) == len(set(seen.keys))
