"""Silences as an Alertmanager gets them, and what becomes of alerts that it does not silence."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from alerts.alert.alert import Alert
from alerts.delivery.receivers.alert_body import ReceiverContext
from alerts.delivery.receivers.alertmanager import AlertmanagerReceiver
from alerts.delivery.receivers.alertmanager_silences import wanted_for
from alerts.delivery.receivers.receiver import Delivery, Notification, Outcome
from alerts.delivery.silences import FOREVER_MS, Match, Quiet, Silence, Window
from alerts.rules import ALL_RULES

MakeAlert = Callable[..., Alert]
NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


class Manager:
    """What an Alertmanager looks like from outside; takes alerts always, and silences if it may."""

    def __init__(self) -> None:
        manager = self
        self.is_open = True
        """Whether it takes silences."""
        self.asked: list[tuple[str, str]] = []
        self.alerts: list[str] = []
        """Names of the alerts that it was sent, in order."""
        self.silences: list[dict[str, Any]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(manager.silences)

            def do_DELETE(self) -> None:
                name = self.path.rpartition("/")[2]
                manager.silences = [one for one in manager.silences if one["id"] != name]
                self._answer({})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path == "/api/v2/alerts":
                    manager.alerts += [one["labels"]["alertname"] for one in body]
                elif manager.is_open:
                    name = str(len(manager.asked))
                    manager.silences.append({**body, "id": name, "updatedAt": body["startsAt"], "status": {}})
                self._answer({"silenceID": "1"}, 200 if manager.is_open or "alerts" in self.path else 403)

            def _answer(self, values: Any, status: int = 200) -> None:
                manager.asked.append((self.command, self.path.rpartition("/")[0] + "/"))
                body = json.dumps(values).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def manager() -> Iterator[Manager]:
    made = Manager()
    yield made
    made.server.shutdown()
    made.server.server_close()


def receiver(manager: Manager, *silences: Silence, **options: Any) -> AlertmanagerReceiver:
    """Return one that tells this Alertmanager, while these silences hold."""
    context = ReceiverContext(quiet=Quiet(silences))
    return AlertmanagerReceiver(
        "am", [manager.url], context=context, clock_s=lambda: NOW_MS / 1000, **options
    )


def tell(one: AlertmanagerReceiver, *alerts: Alert) -> Delivery:
    """Deliver these alerts at once."""
    return one.deliver(Notification(id=alerts[0].id, revision=0, alerts=alerts))


def silence(until_ms: int = NOW_MS + HOUR_MS, from_ms: int = 0, **match: Any) -> Silence:
    return Silence(match=Match(**match), from_ms=from_ms, until_ms=until_ms)


def window(**match: Any) -> Window:
    return Window(match=Match(**match), from_ms=0, until_ms=NOW_MS + HOUR_MS)


def matches(matchers: Any, **labels: str) -> bool:
    """Say whether an Alertmanager would match these labels; a missing one is empty."""

    def holds(one: dict[str, Any]) -> bool:
        value = labels.get(one["name"], "")
        hit = bool(re.fullmatch(one["value"], value)) if one["isRegex"] else one["value"] == value
        return hit is one["isEqual"]

    return all(map(holds, matchers))


@pytest.mark.parametrize(
    ("match", "silenced"),
    [
        ({}, {"storm/payments", "storm/orders", "moved/"}),
        ({"groups": ("pay.*",)}, {"storm/payments"}),
        ({"groups": (".*",)}, {"storm/payments", "storm/orders"}),
        ({"groups": ("pay.*", "a)|(b|orders")}, {"storm/payments"}),
        ({"groups": ("(?!pay).*",)}, {"storm/payments"}),
        ({"alerts": ("CoordinatorMoved",)}, {"moved/"}),
        ({"clusters": ("us.east",)}, set()),
        ({"alert_id": "storm"}, {"storm/payments"}),
    ],
)
def test_the_silence_there_matches_what_it_should(
    make_alert: MakeAlert, match: dict[str, Any], silenced: set[str]
) -> None:
    """Patterns that Go does not have become the labels of the one alert; others' alerts are left alone."""
    alert = make_alert(id="storm", name="RebalanceStorm", cluster="eu", group="payments")
    matchers = wanted_for(alert, window(**match)).matchers
    seen = {
        "storm/payments": {"alertname": "RebalanceStorm", "cluster": "eu", "group": "payments"},
        "storm/orders": {"alertname": "RebalanceStorm", "cluster": "eu", "group": "orders"},
        "moved/": {"alertname": "CoordinatorMoved", "cluster": "eu"},
        "theirs": {"alertname": "DiskFull", "cluster": "eu", "group": "payments"},
    }
    assert {name for name, labels in seen.items() if matches(matchers, **labels)} == silenced


def test_our_alerts_are_those_of_the_rules(make_alert: MakeAlert) -> None:
    """Every rule's name is matched where no alert is named."""
    matchers = wanted_for(make_alert(), window()).matchers
    assert all(matches(matchers, alertname=rule.name) for rule in ALL_RULES)


def test_silences_come_before_alerts_once(manager: Manager, make_alert: MakeAlert) -> None:
    """One for all alerts that it matches, and nothing is asked where nothing is silenced."""
    one = receiver(manager, silence(groups=("pay.*",)))
    alerts = [make_alert(id=name, group=name) for name in ("payments", "pay-outs", "orders")]
    assert tell(one, *alerts).outcome is Outcome.DELIVERED
    assert [method for method, _ in manager.asked] == ["GET", "POST", "POST"]
    assert (len(manager.silences), len(manager.alerts)) == (1, 3)
    tell(one, *alerts)
    assert (len(manager.silences), len(manager.alerts)) == (1, 6)
    unsilenced = receiver(manager, silences=False)
    manager.asked.clear()
    tell(unsilenced, *alerts)
    assert manager.asked == [("POST", "/api/v2/")]


def test_one_that_takes_no_silence_is_not_sent_what_is_silenced(
    manager: Manager, make_alert: MakeAlert
) -> None:
    """Its people would be paged; the others are sent, and the trouble is told."""
    manager.is_open = False
    one = receiver(manager, silence(groups=("payments",)))
    answer = tell(
        one, make_alert(id="a", group="payments", name="SessionTimeout"), make_alert(id="b", group="x")
    )
    assert answer.outcome is Outcome.DELIVERED
    assert "POST http://127.0.0.1" in answer.detail
    assert "HTTP 403" in answer.detail
    assert manager.alerts == [make_alert().name]
    assert tell(one, make_alert(id="a", group="payments")).outcome is Outcome.DELIVERED
    assert len(manager.alerts) == 1
    manager.is_open = True
    assert tell(one, make_alert(id="a", group="payments")).detail == ""
    assert len(manager.alerts) == 2


def test_a_silence_that_somebody_ended_there_stays_ended(manager: Manager, make_alert: MakeAlert) -> None:
    """Whoever does that wants to be told."""
    one = receiver(manager, silence(groups=("payments",)))
    tell(one, make_alert(group="payments"))
    (there,) = manager.silences
    there["endsAt"] = there["updatedAt"] = "2023-11-14T22:13:10Z"
    tell(one, make_alert(group="payments"))
    assert (len(manager.silences), len(manager.alerts)) == (1, 2)


def test_what_begins_soon_is_there_in_time(manager: Manager, make_alert: MakeAlert) -> None:
    """Five minutes before; what begins later is not."""
    later = silence(from_ms=NOW_MS + HOUR_MS, until_ms=NOW_MS + 2 * HOUR_MS, groups=("later",))
    soon = silence(from_ms=NOW_MS + 200_000, groups=("soon",))
    alerts = [make_alert(id=name, group=name) for name in ("soon", "later")]
    assert tell(receiver(manager, soon, later), *alerts).detail == ""
    assert [(one["startsAt"], one["createdBy"]) for one in manager.silences] == [
        ("2023-11-14T22:16:40.000Z", "configuration of groupwatch")
    ]
    assert len(manager.alerts) == 2


def test_a_silence_without_an_end_is_lent(manager: Manager, make_alert: MakeAlert) -> None:
    """For an hour, and again in time; if groupwatch dies it ends by itself."""
    clock = [NOW_MS / 1000]
    context = ReceiverContext(quiet=Quiet([silence(FOREVER_MS, alert_id="a")]))
    one = AlertmanagerReceiver("am", [manager.url], context=context, clock_s=lambda: clock[0])
    ends = []
    for minutes in (0, 20, 40):
        clock[0] = NOW_MS / 1000 + minutes * 60
        tell(one, make_alert(id="a"))
        ends.append([there["endsAt"][11:16] for there in manager.silences])
    assert ends == [["23:13"], ["23:13"], ["23:13", "23:53"]]


def test_what_nobody_wants_any_more_is_ended(manager: Manager, make_alert: MakeAlert) -> None:
    """Also what an earlier process has left; silences of others are left alone."""
    tell(receiver(manager, silence(groups=("payments",))), make_alert(group="payments"))
    theirs = {**manager.silences[0], "id": "theirs", "comment": "disk is full"}
    manager.silences.append(theirs)
    tell(receiver(manager), make_alert(group="payments"))
    assert manager.silences == [theirs]
