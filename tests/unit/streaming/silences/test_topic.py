"""The silences topic as Kafka's client shows it."""

from typing import Any

import pytest

from streaming.kafka_address import KafkaAddress
from streaming.silences import topic as module
from streaming.silences.topic import Record, SilencesTopic


class ReaderOfATopicThatIsMade:
    """A consumer that finds no topic when it is asked first, and one from then on."""

    def __init__(self) -> None:
        self._asked = 0

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Answer None once."""
        self._asked += 1
        return None if self._asked == 1 else {0}

    def poll(self, **_: Any) -> dict[Any, Any]:
        """Fail: nothing was assigned."""
        raise AssertionError("polled without an assignment")

    def close(self) -> None:
        """Nothing is open."""


def test_a_topic_that_is_made_while_it_is_looked_for_is_not_followed_unread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is looked for again in some seconds; before, its silences were never seen."""
    monkeypatch.setattr(module, "consumer", lambda *_, **__: ReaderOfATopicThatIsMade())
    address = KafkaAddress(bootstrap_servers=("127.0.0.1:1",))
    began: list[list[Record]] = []

    SilencesTopic(address, "silences").follow(began.append, lambda _: None, lambda: False)

    assert began == [[]]
