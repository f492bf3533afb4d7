"""Random lives of alerts, receivers that fail, crashes and compaction: what a receiver ends up believing."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alerts.alert.alert import Alert, AlertStatus, Severity
from alerts.delivery.log_reader import Reader
from alerts.delivery.outbox import Outbox
from alerts.delivery.receivers.receiver import Delivery, Notification, Outcome
from alerts.delivery.routing import Route

if TYPE_CHECKING:
    from tests.unit.alerts.conftest import MemoryTopic

T0 = 1_700_000_002_000
DELIVERED = Delivery(outcome=Outcome.DELIVERED)
RETRY = Delivery(outcome=Outcome.RETRY)

WRITES = ("fire", "more", "louder", "end", "again")
STEPS = ("send", "fail", "die sending", "die", "restart", "compact", "wait", "read")
ids = st.sampled_from(["a", "b", "c"])
actions = st.one_of(
    st.tuples(st.sampled_from(WRITES), ids),
    st.tuples(st.sampled_from(STEPS), st.just("")),
)


class World:
    """The topic, the notifier of the day, and what the receiver believes."""

    def __init__(self, topic: "MemoryTopic", base: Alert, routes: tuple[Route, ...]) -> None:
        self.topic = topic
        self.base = base
        self.routes = routes
        self.now_ms = T0
        self.alerts: dict[str, Alert] = {}
        self.lives = 0
        self.believed: dict[str, set[Severity]] = {}
        self.heard: set[tuple[str, int]] = set()
        self.doubtful: set[str] = set()
        """Alerts that waited when a process was killed, or whose delivery it had not committed; the end of
        these may be told for nothing."""
        self.start()

    def start(self) -> None:
        """A new process: nothing but the topic and its cursors is left."""
        self.outbox = Outbox(
            "r", self.routes, max_age_ms=10**12, caught_up=lambda _: True, jitter=lambda: 1.0
        )
        self.reader = Reader("main", self.topic.open, self.outbox, clock_ms=lambda: self.now_ms)
        self.log = self.topic.open("r")
        self.reader.begin(self.log)

    def write(self, what: str, name: str) -> None:
        """What the rules would write next, if it makes sense for this alert."""
        last = self.alerts.get(name)
        is_open = last is not None and last.status is AlertStatus.FIRING
        if what == "again":
            if last is not None:
                self.put(last)  # the job crashed and wrote its batch once more
        elif what == "fire" and not is_open:
            self.lives += 1
            self.put(self.made(id=f"{name}{self.lives}", group=name))
        elif last is not None and is_open and what != "fire":
            self.put(msgspec.structs.replace(last, revision=last.revision + 1, **self.changes(what)))

    def changes(self, what: str) -> dict[str, Any]:
        """What a revision changes."""
        if what == "end":
            return {"status": AlertStatus.RESOLVED, "ends_at_ms": self.now_ms}
        return {"severity": Severity.CRITICAL} if what == "louder" else {"summary": "more"}

    def made(self, **changes: Any) -> Alert:
        """A new alert."""
        return msgspec.structs.replace(
            self.base, detected_at_ms=self.now_ms, starts_at_ms=self.now_ms, **changes
        )

    def put(self, alert: Alert) -> None:
        """Write it, a moment from now."""
        self.alerts[alert.group] = alert
        self.topic.write(alert, delay_ms=self.now_ms - alert.detected_at_ms + 500)

    def send(self, answer: Delivery, *, commit: bool = True, most: int = 1_000) -> None:
        """Make the attempts that are due."""
        while most > 0 and (work := self.outbox.next_work(self.now_ms)):
            if answer is DELIVERED:
                self.hear(work.notification)
            self.outbox.settle(work, answer, self.now_ms)
            if not commit:
                self.doubtful.update(alert.id for alert in work.notification.alerts)
            most -= 1
        if commit:
            self.reader.commit(self.log)

    def hear(self, notification: Notification) -> None:
        """What the receiver makes of a notification."""
        repeated = (notification.id, notification.revision) in self.heard
        self.heard.add((notification.id, notification.revision))
        for alert in notification.alerts:
            believed = self.believed.setdefault(alert.id, set())
            if alert.status is AlertStatus.FIRING:
                believed.add(alert.severity)
            else:
                was_told = repeated or alert.severity in believed
                assert was_told or alert.id in self.doubtful, "the end of what was never told"
                believed.discard(alert.severity)

    def do(self, action: str, name: str) -> None:
        """One step of the history."""
        if action in WRITES:
            self.write(action, name)
            return
        steps: dict[str, Callable[[], object]] = {
            "read": lambda: self.reader.step(self.log),
            "send": lambda: self.send(DELIVERED),
            "fail": lambda: self.send(RETRY),
            "die sending": self.die_sending,
            "restart": self.restart,
            "die": self.die,
            "compact": self.topic.compact,
            "wait": self.wait,
        }
        steps[action]()

    def die_sending(self) -> None:
        """SIGKILL between a delivery and its commit, and a new process."""
        self.send(DELIVERED, commit=False, most=1)
        self.die()

    def die(self) -> None:
        """SIGKILL, and a new process."""
        self.doubtful.update(self.outbox._pending)
        self.start()

    def restart(self) -> None:
        """A clean stop, and a new process."""
        self.reader.commit(self.log, closing=True)
        self.start()

    def wait(self) -> None:
        """A minute passes: every backoff is over."""
        self.now_ms += 60_000

    def should_believe(self, severities: tuple[Severity, ...]) -> dict[str, set[Severity]]:
        """What a receiver must hold for firing."""
        return {
            alert.id: {alert.severity}
            for alert in self.alerts.values()
            if alert.status is AlertStatus.FIRING and alert.severity in severities
        }


ROUTES = st.sampled_from(
    [
        (tuple(Severity), (Route(receivers=("r",)),)),
        ((Severity.WARNING,), (Route(receivers=("r",), severity=(Severity.WARNING,)),)),
        ((Severity.CRITICAL,), (Route(receivers=("r",), severity=(Severity.CRITICAL,)),)),
    ]
)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(actions, max_size=40), ROUTES)
def test_a_receiver_ends_up_believing_what_is_true(
    make_alert: Any, topic: "MemoryTopic", history: list[tuple[str, str]], routes: Any
) -> None:
    """After any history, once all is well again, exactly the open alerts are held for firing."""
    severities, chosen = routes
    topic.__init__(idle_ms=0)  # type: ignore[misc]
    world = World(topic, make_alert(), chosen)
    for action, name in history:
        world.do(action, name)
    for _ in range(3):
        world.reader.step(world.log)
        world.wait()
        world.send(DELIVERED)
    believed = {alert_id: held for alert_id, held in world.believed.items() if held}
    assert believed == world.should_believe(severities)
    assert topic.cursors.get("r", {}).get(0, (0,))[0] == topic.ends[0]
