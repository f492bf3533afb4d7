"""Why an open alert is not sent to a receiver: one value for each receiver, in the API and in the log."""

import logging
from collections.abc import Callable

import pytest

from alerts.alert.alert import Alert
from alerts.delivery.notifier import Notifier
from alerts.delivery.outbox import Outbox
from alerts.delivery.receivers.log import LogReceiver
from alerts.delivery.receivers.receiver import Delivery, Outcome
from alerts.delivery.routing import Route
from alerts.delivery.silences import Match, Quiet, Silence
from alerts.delivery.waiting import HeldBack, Place

MakeAlert = Callable[..., Alert]
T0 = 1_700_000_002_000
HOUR_MS = 3_600_000
EVERYTHING = Route(receivers=("oncall",))


def outbox(route: Route = EVERYTHING, quiet: Quiet | None = None) -> Outbox:
    """Return one whose job is catching up."""
    return Outbox(
        "oncall",
        [route],
        max_age_ms=24 * HOUR_MS,
        caught_up=lambda _cluster: False,
        jitter=lambda: 1.0,
        quiet=quiet or Quiet(),
    )


def reason(one: Outbox, alert: Alert) -> HeldBack | None:
    """Return why ``alert`` is not sent once everything that is due was tried."""
    assert one.next_work(T0) is None
    return one.held_back(alert.id, T0)


def test_an_alert_that_no_route_brings_here(make_alert: MakeAlert) -> None:
    """The route is for another cluster."""
    alert, one = make_alert(), outbox(Route(receivers=("oncall",), cluster=("us",)))
    one.direct(alert, now_ms=T0)

    assert reason(one, alert) is HeldBack.NOT_ROUTED


def test_a_silenced_alert_is_logged_once(make_alert: MakeAlert, caplog: pytest.LogCaptureFixture) -> None:
    """A newer revision of it is no news."""
    quiet = Quiet([Silence(match=Match(), until_ms=T0 + HOUR_MS)])
    alert, one = make_alert(), outbox(quiet=quiet)
    with caplog.at_level(logging.INFO, "groupwatch.notifier"):
        for revision in range(3):
            one.direct(make_alert(revision=revision), now_ms=T0)
            assert reason(one, alert) is HeldBack.SILENCED

    assert [record.message for record in caplog.records] == [
        f"receiver oncall is not told of {alert.name} about {alert.group}: silenced"
    ]


def test_the_effect_of_what_fires_for_the_whole_cluster(make_alert: MakeAlert) -> None:
    """The cause itself was told, which is no reason."""
    cause = make_alert(id="cause", name="SourceSilent", group="")
    effect, one = make_alert(id="effect", name="CommitsStopped"), outbox()
    one.direct(cause, now_ms=T0)
    work = one.next_work(T0)
    assert work is not None
    one.settle(work, Delivery(outcome=Outcome.DELIVERED), T0)
    one.direct(effect, now_ms=T0)

    assert (reason(one, effect), one.held_back("cause", T0)) == (HeldBack.EFFECT, None)


def test_an_alert_of_a_job_that_is_catching_up_waits_for_its_cursor_and_then_for_its_end(
    make_alert: MakeAlert,
) -> None:
    """It was detected an hour before it was written."""
    alert, one = make_alert(detected_at_ms=T0 - HOUR_MS), outbox()
    one.recover("main", {})
    one.recovered("main", now_ms=T0)
    one.take(alert, Place("main", 0, 0), timestamp_ms=T0, now_ms=T0)
    before = reason(one, alert)
    one.cursors("main")
    one.announced("main")

    assert (before, reason(one, alert)) == (HeldBack.NOT_ANNOUNCED, HeldBack.CATCHING_UP)


def test_a_receiver_that_fails_is_the_reason_for_all_that_waits_for_it(make_alert: MakeAlert) -> None:
    """Until its pause is over."""
    first, second, one = make_alert(), make_alert(id="another"), outbox()
    one.direct(first, now_ms=T0)
    work = one.next_work(T0)
    assert work is not None
    one.settle(work, Delivery(outcome=Outcome.RETRY), T0)
    one.direct(second, now_ms=T0)

    assert (reason(one, first), reason(one, second)) == (HeldBack.RECEIVER_FAILING,) * 2
    assert one.held_back(second.id, T0 + HOUR_MS) is None


def test_what_is_not_open_here_has_no_reason(make_alert: MakeAlert) -> None:
    """Nothing is known of it."""
    assert outbox().held_back(make_alert().id, T0) is None


def test_each_receiver_has_its_own_reason(make_alert: MakeAlert) -> None:
    """The route names one of two; that one was told nothing yet, and nothing holds it back."""
    receivers = [LogReceiver("oncall"), LogReceiver("chat")]
    notifier = Notifier(receivers, [EVERYTHING], {}, clock_ms=lambda: T0)
    notifier.direct(make_alert())

    assert notifier.held_back(make_alert().id) == {"chat": HeldBack.NOT_ROUTED}
