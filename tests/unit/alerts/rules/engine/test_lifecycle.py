"""Ids, revisions and ends of alerts."""

import msgspec
import pytest

from alerts.alert.alert import Alert, AlertStatus, Culprit, Severity
from alerts.rules.engine.lifecycle import (
    Closing,
    Finding,
    OpenAlert,
    adopt,
    alert_id,
    fire,
    resolve,
    restate,
    runbook,
    update,
)
from coordinator_model.state.group import Basis

FINDING = Finding(
    starts_at_ms=1_000,
    severity=Severity.WARNING,
    summary="It is so.",
    cause="Because.",
    culprits=(Culprit(member_id="m1", client_id="app", client_host="/10.0.0.1"),),
    evidence=("seen",),
    cost="much",
    advice="act",
)


def opened(finding: Finding = FINDING) -> OpenAlert:
    return fire(finding, cluster="eu", group="g", name="RebalanceStorm", detected_at_ms=2_000)


def changed(**fields: object) -> Finding:
    return msgspec.structs.replace(FINDING, **fields)


def test_a_fired_alert_is_the_finding_with_its_id() -> None:
    """Revision 0, nothing added and nothing lost."""
    assert opened().alert == Alert(
        id=alert_id(cluster="eu", group="g", name="RebalanceStorm", starts_at_ms=1_000),
        revision=0,
        name="RebalanceStorm",
        cluster="eu",
        group="g",
        status=AlertStatus.FIRING,
        severity=Severity.WARNING,
        starts_at_ms=1_000,
        ends_at_ms=None,
        detected_at_ms=2_000,
        summary="It is so.",
        cause="Because.",
        culprits=FINDING.culprits,
        evidence=("seen",),
        runbook="",
        cost="much",
        advice="act",
    )


def test_ids_are_pinned() -> None:
    """Another process, another version: the same id, or receivers see every alert twice."""
    assert (
        alert_id(cluster="eu", group="g", name="RebalanceStorm", starts_at_ms=1_000)
        == "04783ce8785c36613988e31a346e9aea"
    )


@pytest.mark.parametrize(
    "other",
    [
        {"cluster": "us"},
        {"group": "h"},
        {"name": "SessionTimeout"},
        {"starts_at_ms": 1_001},
        {"cluster": "eug", "group": ""},
    ],
)
def test_ids_differ_in_each_part(other: dict[str, object]) -> None:
    """No two alerts share an id, not even where names run into one another."""
    parts: dict[str, object] = {
        "cluster": "eu",
        "group": "g",
        "name": "RebalanceStorm",
        "starts_at_ms": 1_000,
    }

    assert alert_id(**(parts | other)) != alert_id(**parts)  # type: ignore[arg-type]


def test_passing_time_is_no_revision() -> None:
    """Another summary with another number of seconds is not worth a page."""
    alert = opened()

    assert update(alert, changed(summary="It is still so.", cost="more", evidence=("seen", "again"))) is None
    assert alert.alert.revision == 0


def test_a_new_culprit_is_a_revision() -> None:
    """The content is the newest, the beginning stays."""
    alert = opened()
    both = (*FINDING.culprits, Culprit(member_id="m2"))
    news = update(alert, changed(culprits=both, summary="Two now."))

    assert news is not None
    assert (news.revision, news.culprits, news.summary) == (1, both, "Two now.")
    assert (news.id, news.starts_at_ms, news.detected_at_ms) == (alert.alert.id, 1_000, 2_000)


def test_a_culprit_that_drops_out_and_returns_is_no_news() -> None:
    """Who was told once is known."""
    alert = opened()
    update(alert, changed(culprits=(Culprit(member_id="m2"),)))

    assert update(alert, FINDING) is None
    assert alert.alert.revision == 1


def test_better_evidence_about_a_culprit_is_a_revision() -> None:
    """A candidate that is now observed is another message."""
    alert = opened(changed(culprits=(Culprit(member_id="m1", basis=Basis.CANDIDATE),)))

    assert update(alert, FINDING) is not None


def test_louder_is_a_revision_and_quieter_is_not() -> None:
    """An open alert never gets quieter."""
    alert = opened()
    louder = update(alert, changed(severity=Severity.CRITICAL))

    assert louder is not None
    assert louder.severity is Severity.CRITICAL
    assert update(alert, FINDING) is None
    assert alert.alert.severity is Severity.CRITICAL


def test_another_aspect_is_a_revision() -> None:
    """Say, another dominant cause, and so other advice."""
    alert = opened(changed(aspect="joins"))

    assert update(alert, changed(aspect="joins")) is None
    assert update(alert, changed(aspect="timeouts")) is not None


def test_resolving_is_the_last_revision() -> None:
    """Everything stays but status, end, summary and cost."""
    alert = opened().alert

    assert resolve(alert, Closing(ends_at_ms=9_000, summary="Over.")) == msgspec.structs.replace(
        alert, revision=1, status=AlertStatus.RESOLVED, ends_at_ms=9_000, summary="Over."
    )


def test_nothing_ends_before_it_began() -> None:
    """Clocks of brokers differ."""
    assert resolve(opened().alert, Closing(ends_at_ms=1, summary="Over.")).ends_at_ms == 1_000


def test_an_adopted_alert_that_says_the_same_is_no_news() -> None:
    """An earlier job told it, and this one counts by other keys; what differs is told."""
    alert = adopt(msgspec.structs.replace(opened().alert, revision=6))
    same = changed(aspect="beats/6000", culprit_keys=frozenset({"beats/6000"}))

    assert update(alert, same) is None
    assert update(alert, same) is None
    news = update(alert, changed(aspect="beats/10000", summary="Another value."))
    assert (news.revision, news.summary) == (7, "Another value.") if news else False


def test_an_adopted_alert_knows_its_culprits() -> None:
    """They are no news; another one is, at the next revision."""
    old = msgspec.structs.replace(opened().alert, revision=6)
    alert = adopt(old)
    assert update(alert, FINDING) is None
    news = update(alert, changed(culprits=(Culprit(member_id="m2"),)))

    assert news is not None
    assert (news.id, news.revision) == (old.id, 7)


def test_an_open_alert_survives_saving() -> None:
    """What is remembered of it reads back as it was."""
    alert = opened()

    assert msgspec.msgpack.decode(msgspec.msgpack.encode(alert), type=OpenAlert) == alert


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("", ""),
        ("https://wiki.example/kafka", "https://wiki.example/kafka/SessionTimeout.md"),
        ("https://wiki.example/kafka/", "https://wiki.example/kafka/SessionTimeout.md"),
    ],
)
def test_where_runbooks_are(base: str, expected: str) -> None:
    """Where the operator publishes them; a path that nobody can open is not told."""
    assert runbook("SessionTimeout", base) == expected


def test_an_alert_that_is_restated_changes_its_summary_only() -> None:
    """The next revision, remembered, in words that no name in them can forge."""
    alert = opened()
    before = alert.alert

    after = restate(alert, "It comes \x1b[31mand goes.")

    assert (
        after
        == alert.alert
        == msgspec.structs.replace(before, revision=1, summary=r"It comes \x1b[31mand goes.")
    )
