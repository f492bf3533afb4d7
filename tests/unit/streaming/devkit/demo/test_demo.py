"""When the demo passes."""

from pathlib import Path

import httpx
import pytest
import yaml
from rich.text import Text

from streaming.config.config import parse_config
from streaming.devkit.demo import plan
from streaming.devkit.demo.report import missing, unplanned
from streaming.devkit.demo.ticker import Ticker
from streaming.devkit.kafka.webhook_probe import ReceivedAlert, WebhookProbe


def _told(alert: str, group: str, culprit: str, status: str = "firing") -> ReceivedAlert:
    labels = {"alertname": alert, "group": group, "cluster": plan.CLUSTER, "severity": "warning"}
    annotations = {"summary": "…", "culprit": f"{culprit}-uuid (client {culprit}, host /127.0.0.1, observed)"}
    return ReceivedAlert(0, "id/0", status, labels, annotations, "id")


ALL = [_told(one.alert, one.group, one.culprit) for one in plan.INCIDENTS]


def test_all_incidents_and_nothing_else_pass() -> None:
    """The planned alerts, with what is permitted and what is resolved, leave no complaint."""
    permitted = [_told(alert, group, "payments-3") for alert, group in plan.PERMITTED]
    resolved = [_told("RebalanceStorm", "payments", "payments-3", status="resolved")]

    assert missing(ALL + permitted + resolved) + unplanned(ALL + permitted + resolved) == []


@pytest.mark.parametrize("left_out", range(len(ALL)))
def test_each_incident_is_needed(left_out: int) -> None:
    """One alert that did not arrive fails the demo."""
    told = [one for n, one in enumerate(ALL) if n != left_out]

    assert len(missing(told)) == 1


def test_the_wrong_culprit_is_a_failure() -> None:
    """An alert that blames somebody else does not count."""
    told = [_told(one.alert, one.group, "payments-1") for one in plan.INCIDENTS if one.group == "payments"]

    complaints = [said for said in missing(told + ALL[2:]) if "where payments-3 did it" in said]

    assert len(complaints) == len(told)


def test_a_client_whose_name_only_begins_alike_is_another() -> None:
    """``payments-3`` is not ``payments-31``."""
    told = [_told("RebalanceStorm", "payments", "payments-31"), *ALL[1:]]

    assert len(missing(told)) == 1


@pytest.mark.parametrize("group", [*plan.HEALTHY_GROUPS, ""])
def test_an_alert_about_the_healthy_fails_the_demo(group: str) -> None:
    """Nothing may be said of groups that are well, nor of the cluster."""
    assert len(unplanned([*ALL, _told("RebalanceStorm", group, "x-1")])) == 1


def test_the_demos_configuration_is_one(tmp_path: Path) -> None:
    """What --config-out writes can be used with groupwatch run."""
    values = plan.demo_config(
        bootstrap_servers="127.0.0.1:9092",
        http_port=1,
        webhook_url="http://127.0.0.1:2/hook",
        every_url="http://127.0.0.1:3/hook",
        work=tmp_path,
    )

    assert parse_config(yaml.safe_dump(values)).clusters[0].name == plan.CLUSTER


def test_the_probe_remembers_what_it_was_posted() -> None:
    """Each alert of a notification is kept with its key; nonsense is refused."""
    alert = {
        "status": "firing",
        "labels": {"alertname": "RebalanceStorm", "group": "g"},
        "annotations": {"culprit": "m (client c, observed); n (client d, observed)"},
        "fingerprint": "id",
    }
    with WebhookProbe() as probe:
        good = httpx.post(probe.url, json={"alerts": [alert]}, headers={"Idempotency-Key": "id/0"})
        bad = httpx.post(probe.url, json={"alerts": [{}]})
        (told,) = probe.firing()

    assert (good.status_code, bad.status_code) == (200, 400)
    assert (told.subject, told.idempotency_key) == (("RebalanceStorm", "g"), "id/0")
    assert told.first_culprit == "m (client c, observed)"


def test_a_message_says_what_is_new_in_it() -> None:
    """Which message about the group it is; what still fires as before is counted."""

    def post(key: str, *told: tuple[str, str, str]) -> None:
        alerts = [
            {
                "status": status,
                "labels": {"alertname": name, "group": "payments"},
                "annotations": {"summary": summary},
                "fingerprint": name,
            }
            for status, name, summary in told
        ]
        httpx.post(probe.url, json={"alerts": alerts}, headers={"Idempotency-Key": key})

    said: list[str] = []
    storm = ("firing", "RebalanceStorm", "it comes and goes")
    with WebhookProbe() as probe:
        ticker = Ticker(probe, said.append, said.append)
        post("k1", ("firing", "SessionTimeout", "one is gone"))
        post("k2", ("firing", "SessionTimeout", "two are gone"), storm)
        ticker.look()
        ticker.look()
        post("k3", ("resolved", "SessionTimeout", "two are gone"), storm)
        ticker.look()
        subjects = ticker.subjects()
    assert [Text.from_markup(one).plain.split() for one in said] == [
        one.split()
        for one in (
            "message 1 about payments",
            "firing SessionTimeout: one is gone",
            "message 2 about payments",
            "firing SessionTimeout: two are gone",
            "firing RebalanceStorm: it comes and goes",
            "message 3 about payments, 1 as before",
            "resolved SessionTimeout: two are gone",
        )
    ]
    assert subjects == {("SessionTimeout", "payments"), ("RebalanceStorm", "payments")}
