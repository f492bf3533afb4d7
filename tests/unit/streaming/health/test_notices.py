"""What an operator must know and what does not stop the job."""

import logging

import pytest

from streaming.health.query_progress import Progress


def test_a_notice_stays_in_ready_until_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    """The log has it once when it begins and once when it is over; `/ready` as long as it lasts."""
    progress = Progress("prod")
    with caplog.at_level(logging.INFO):
        progress.notice("events", "groupwatch-events has CreateTime.")
        progress.notice("events", "groupwatch-events has CreateTime.")
        during = progress.describe()["notices"]
        progress.notice("events", "")
        progress.notice("events", "")

    assert during == ["groupwatch-events has CreateTime."]
    assert progress.describe()["notices"] == []
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
