"""Names from outside, where people read them."""

import logging

import pytest

from alerts.alert.alert import Culprit, Severity
from alerts.alert.wording import printable
from alerts.delivery.receivers.alert_body import culprits_text
from alerts.rules.engine.lifecycle import Finding, fire
from streaming.logs import LineFormatter

NAME = "a\x1b[31m\nb\u202ec\u2028\u2066\x9bd"
WRITTEN = r"a\x1b[31m\nb\u202ec\u2028\u2066\x9bd"


def test_what_cannot_be_seen_is_written_out() -> None:
    """Control characters, marks of direction and line separators are written; letters stay."""
    assert printable(NAME) == WRITTEN
    assert printable("группа-日本 émile 🙂") == "группа-日本 émile 🙂"
    assert printable("\ud800") == r"\ud800"


def test_alerts_tell_names_escaped() -> None:
    """The sentences of an alert hold no control characters; its fields keep the names as they are."""
    finding = Finding(
        starts_at_ms=1,
        severity=Severity.WARNING,
        summary=f"{NAME} is stuck",
        cause=NAME,
        evidence=(NAME,),
        cost=NAME,
        advice=NAME,
    )
    alert = fire(finding, cluster="c", group=NAME, name="X", detected_at_ms=2).alert

    told = (alert.summary, alert.cause, *alert.evidence, alert.cost, alert.advice)
    assert told == (f"{WRITTEN} is stuck", WRITTEN, WRITTEN, WRITTEN, WRITTEN)
    assert alert.group == NAME


def test_webhooks_name_culprits_escaped() -> None:
    """The line about who did it can be pasted into any chat."""
    assert culprits_text((Culprit(member_id=NAME),)) == f"{WRITTEN} (observed)"


@pytest.mark.parametrize("with_error", [False, True])
def test_no_name_forges_a_line_of_our_log(with_error: bool) -> None:
    """Whatever a name holds, each event of our log begins at one line, and all others are indented."""
    error = ValueError(f"{NAME}\n2026-11-20 12:00:00,000 ERROR forged")
    info = (ValueError, error, None) if with_error else None
    record = logging.LogRecord("x", logging.INFO, "f", 1, "group %s is odd", (NAME,), info, "_named")
    first, *rest = LineFormatter().format(record).split("\n")

    assert "INFO x.named: group a\\x1b[31m" in first
    assert all(line.startswith("    ") and line.isprintable() for line in rest)
