"""Whose request log is raised, when, and when it is put back."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from alerts.alert.alert import Alert, AlertStatus, Severity
from streaming.config.evidence import EvidenceConfig
from streaming.driver.evidence.deciding import (
    OTHERS_GRACE_MS,
    Decision,
    JournalEntry,
    TroublingAlert,
    TroublingAlerts,
    WantedRaise,
    WantedRestore,
    decide,
    parent_level,
    resumed,
)
from streaming.driver.evidence.journal import newest
from tests.unit.made_alerts import an_alert

MINUTE = 60_000
NOW = 1_700_000_000_000
US, THEM = "us", "them"
LIMITS = EvidenceConfig.model_construct(
    alerts=["StuckPreparingRebalance"], for_ms=2 * MINUTE, every_ms=30 * MINUTE, brokers=1
)


def alert(**changes: Any) -> Alert:
    return an_alert(**{"name": "StuckPreparingRebalance", "group": "g", "starts_at_ms": NOW} | changes)


def trouble(group: str, *, rank: int = 1, since_ms: int = NOW) -> TroublingAlert:
    return TroublingAlert(rank, since_ms, group, "StuckPreparingRebalance")


def entry(broker: int = 1, **changes: Any) -> JournalEntry:
    made = JournalEntry(
        cluster="eu",
        broker=broker,
        holder=US,
        before="WARN",
        inherited=False,
        raised_at_ms=NOW,
        until_ms=NOW + 2 * MINUTE,
        groups=("g",),
    )
    return msgspec.structs.replace(made, **changes)


def decided(
    *troubles: TroublingAlert,
    limits: EvidenceConfig | None = LIMITS,
    coordinators: Mapping[str, int] | None = None,
    entries: tuple[JournalEntry, ...] = (),
    after_ms: int = 0,
    **more: Any,
) -> Decision:
    options: dict[str, Any] = {"not_before_ms": {}, "away": frozenset(), **more}
    return decide(
        limits,
        troubles=troubles,
        coordinators={"g": 1, "h": 2} if coordinators is None else coordinators,
        entries={one.broker: one for one in entries},
        holder=US,
        now_ms=NOW + after_ms,
        **options,
    )


def test_a_group_in_trouble_has_its_coordinator_raised() -> None:
    """That broker and no other."""
    assert decided(trouble("g")) == Decision((), (WantedRaise(1, ("g",), ("StuckPreparingRebalance",)),))


def test_without_trouble_or_coordinator_nothing_happens() -> None:
    """An unknown coordinator is looked for; nobody is raised on suspicion."""
    assert decided() == Decision((), ())
    assert decided(trouble("g"), coordinators={}) == Decision((), ())


def test_groups_of_one_coordinator_share_one_raise() -> None:
    """It is told for whom, a group once."""
    found = decided(trouble("g"), trouble("g"), trouble("h"), coordinators={"g": 1, "h": 1})
    assert found.wanted == (WantedRaise(1, ("g", "h"), ("StuckPreparingRebalance",)),)


def test_so_many_brokers_at_once_and_no_more() -> None:
    """The most urgent group's comes first; one that is raised takes its share."""
    assert [want.broker for want in decided(trouble("h"), trouble("g")).wanted] == [2]
    two = LIMITS.model_copy(update={"brokers": 2})
    assert [want.broker for want in decided(trouble("h"), trouble("g"), limits=two).wanted] == [2, 1]
    assert decided(trouble("g"), trouble("h"), entries=(entry(),)) == Decision((), ())
    found = decided(trouble("g"), trouble("h"), limits=two, entries=(entry(),))
    assert [want.broker for want in found.wanted] == [2]


def test_a_broker_that_left_the_cluster_takes_no_share() -> None:
    """Its groups have a new coordinator, and that is when they are in trouble."""
    found = decided(trouble("g"), trouble("h"), entries=(entry(),), away=frozenset({1}))
    assert [want.broker for want in found.wanted] == [2]


@pytest.mark.parametrize(("after_ms", "brokers"), [(30 * MINUTE - 1, []), (30 * MINUTE, [1])])
def test_a_broker_is_not_raised_again_before_its_pause_is_over(after_ms: int, brokers: list[int]) -> None:
    """Counted from the beginning of the last raise, whoever did it."""
    last = entry(back_at_ms=NOW + 2 * MINUTE, holder=THEM)
    found = decided(trouble("g"), entries=(last,), after_ms=after_ms)
    assert [want.broker for want in found.wanted] == brokers


def test_a_broker_that_failed_is_left_alone_for_a_while() -> None:
    """The next one in the order of urgency is taken instead."""
    found = decided(trouble("g"), trouble("h"), not_before_ms={1: NOW + 1})
    assert [want.broker for want in found.wanted] == [2]
    assert [want.broker for want in decided(trouble("g"), not_before_ms={1: NOW}).wanted] == [1]


def test_it_is_put_back_when_its_time_is_over() -> None:
    """Though the trouble goes on."""
    assert decided(trouble("g"), entries=(entry(),), after_ms=2 * MINUTE - 1) == Decision((), ())
    found = decided(trouble("g"), entries=(entry(),), after_ms=2 * MINUTE)
    assert found == Decision((WantedRestore(entry(), "its time is up"),), ())


def test_it_is_put_back_when_the_trouble_is_over_or_has_moved() -> None:
    """Another broker's log would tell nothing of the group."""
    why = "none of its groups is in trouble any more"
    assert decided(entries=(entry(),)).back == (WantedRestore(entry(), why),)
    assert decided(trouble("h"), entries=(entry(),)).back == (WantedRestore(entry(), why),)
    moved = decided(trouble("g"), coordinators={"g": 2}, entries=(entry(),))
    assert moved == Decision(
        (WantedRestore(entry(), why),), ()
    )  # the other one's turn comes when this one is back


def test_an_unknown_coordinator_is_taken_for_the_raised_one() -> None:
    """While it moves nobody can tell, and its time is bounded anyway."""
    assert decided(trouble("g"), coordinators={}, entries=(entry(),)) == Decision((), ())


def test_stopping_and_switching_off_put_back_what_is_ours() -> None:
    """And raise nothing more."""
    ours, theirs = entry(1), entry(2, holder=THEM)
    for limits, stopping, why in (
        (LIMITS, True, "groupwatch stops"),
        (None, False, "evidence is disabled"),
    ):
        found = decided(trouble("g"), limits=limits, stopping=stopping, entries=(ours, theirs))
        assert found == Decision((WantedRestore(ours, why),), ())


def test_what_another_one_raised_is_put_back_only_when_it_is_late() -> None:
    """It may live; if it is gone with its checkpoint and its host, we do it."""
    theirs = entry(holder=THEM)
    assert decided(entries=(theirs,), after_ms=2 * MINUTE + OTHERS_GRACE_MS - 1).back == ()
    late = decided(entries=(theirs,), after_ms=2 * MINUTE + OTHERS_GRACE_MS)
    assert late.back == (WantedRestore(theirs, "the process that raised it has not restored it"),)


def test_after_a_crash_the_time_of_what_we_raised_is_over() -> None:
    """What was put back, and what others raised, stays as it was."""
    ours, done, theirs = entry(1), entry(2, back_at_ms=NOW), entry(3, holder=THEM)
    found = resumed({one.broker: one for one in (ours, done, theirs)}, holder=US, now_ms=NOW + 5)
    assert found == {1: msgspec.structs.replace(ours, until_ms=NOW + 5), 2: done, 3: theirs}


def test_open_alerts_are_kept_by_their_last_word() -> None:
    """The loudest first, then the oldest; repeats, and late revisions from the topic, change nothing."""
    troubles = TroublingAlerts(frozenset(LIMITS.alerts))
    troubles.take(alert())
    troubles.take(alert(id="a2", group="h"))
    troubles.take(alert(id="a2", group="h", revision=1, severity=Severity.CRITICAL))
    troubles.take(alert(id="a2", group="h"))
    troubles.remember(alert(id="a2", group="h"))
    troubles.take(alert(id="a3", group="i", starts_at_ms=NOW - 1))
    assert [one.group for one in troubles.sorted()] == ["h", "i", "g"]
    troubles.take(alert(id="a2", group="h", revision=2, status=AlertStatus.RESOLVED))
    assert [one.group for one in troubles.sorted()] == ["i", "g"]


def test_a_forged_revision_in_the_topic_keeps_no_trouble_open() -> None:
    """The job's next word ends it, whatever its number."""
    troubles = TroublingAlerts(frozenset(LIMITS.alerts))
    troubles.remember(alert(revision=100))
    troubles.take(alert(revision=1, status=AlertStatus.RESOLVED))
    assert troubles.sorted() == []


def test_other_alerts_are_nobodys_business() -> None:
    """Those not listed, and those about a whole cluster."""
    troubles = TroublingAlerts(frozenset({"StuckPreparingRebalance", "SourceSilent"}))
    troubles.take(alert(name="RebalanceStorm"))
    troubles.take(alert(name="SourceSilent", group=""))
    assert troubles.sorted() == []


def test_the_level_that_a_logger_inherits() -> None:
    """Of its nearest ancestor that has one, else of the root."""
    name = "kafka.request.logger"
    assert parent_level({name: "WARN", "kafka": "INFO", "root": "ERROR"}, name) == "INFO"
    assert parent_level({name: "WARN", "root": "ERROR"}, name) == "ERROR"
    assert parent_level({name: "WARN"}, name) is None


def test_the_journal_is_read_by_its_newest_records() -> None:
    """Of this cluster; what is no entry, from whomever, is passed over."""
    first, second = entry(), entry(back_at_ms=NOW)
    other = entry(7, cluster="us")
    values = [msgspec.json.encode(one) for one in (first, other, second)]
    assert newest([values[0], b"{}", None, b"\xff", *values[1:]], "eu") == {1: second}
