"""What a cluster's job hears, and what it misses."""

import json
from typing import Any

from streaming.serving.api import ClusterSources
from tests.unit.streaming.fed_view import FedView

NOW_MS = 1_700_000_100_000
TOPIC = {"offsets": NOW_MS - 1_000}


def told(ready: dict[str, Any] | None = None, **report: Any) -> ClusterSources:
    """The sources of a cluster with that report."""
    view = FedView(["eu"], clock_ms=lambda: NOW_MS)
    view.apply("eu", [("cluster", "", json.dumps(report).encode())])
    (found,) = view.sources([{"cluster": "eu", **(ready or {})}]).clusters
    return found


def test_the_mode_is_what_was_heard() -> None:
    """Full, quiet, requests, offsets, or nothing yet."""
    info, requests = [1, "coordinator_log", NOW_MS - 900_000], [1, "request_log", NOW_MS - 3_000]
    old = [1, "request_log", NOW_MS - 61_000]
    assert told(newest_ms=TOPIC, heard=[info, requests]).mode == "full"
    assert told(newest_ms=TOPIC, heard=[info, old]).mode == "quiet"
    assert told(newest_ms=TOPIC, heard=[requests]).mode == "requests"
    assert told(newest_ms=TOPIC).mode == "offsets"
    assert told().mode == "nothing"


def test_a_broker_that_is_not_heard_is_named() -> None:
    """Also one that is known only as a leader; the others' logs go on."""
    found = told(
        newest_ms=TOPIC,
        heard=[[1, "coordinator_log", NOW_MS], [1, "request_log", NOW_MS - 2_000]],
        leaders={"0": [1, 5], "1": [2, 5]},
    )
    logs = {(one.broker, one.log): (one.heard, one.late_s, one.note) for one in found.logs}
    assert logs[1, "request_log"] == (True, 2.0, "")
    assert logs[2, "coordinator_log"] == (False, None, "no line was ever heard")
    assert found.missing[0].startswith("The coordinator log of broker 2 is not heard")


def test_what_a_missing_source_means_is_said() -> None:
    """One sentence each."""
    assert len(told().missing) == 3
    assert len(told(newest_ms=TOPIC).missing) == 2


def test_what_was_not_understood_is_counted_with_its_last_sample() -> None:
    """By source and reason."""
    sample = {"at_ms": 5, "source": "events", "reason": "bad", "detail": "no", "sample": "AA=="}
    found = told(
        events=[["events", "line", 7]],
        undecodable=[["events", "bad", 2], ["events", "worse", 1], ["offsets", "bad", 9]],
        samples=[{**sample, "at_ms": 4}, sample],
        newest_ms={"events": NOW_MS - 500},
    )
    one = next(source for source in found.sources if source.source == "events")
    assert (one.events, one.undecodable, one.late_s) == (7, 3, 0.5)
    assert one.undecodable_by_reason == {"bad": 2, "worse": 1}
    assert one.last_undecodable is not None
    assert one.last_undecodable.at_ms == 5


def test_what_ready_says_is_passed_on() -> None:
    """Notices, readiness, and how far the watermark is behind."""
    found = told({"ready": True, "watermark_behind_s": 1.5, "notices": ["a clock stepped"]})
    assert (found.ready, found.watermark_behind_s, found.notices) == (True, 1.5, ["a clock stepped"])
