"""What is sent to which broker, and what an answer means."""

from types import SimpleNamespace as Bag
from typing import Any, cast

import pytest

from streaming.driver.evidence.switching import NO_ALTER, NO_DESCRIBE, NO_GROUPS, Switch
from streaming.driver.probing.brokers import NotAllowedError
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import Admin

LOGGER = "kafka.request.logger"


class Paper:
    """An admin client that answers what it was told to."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[Any, int | None]] = []
        self.closed = 0

    def ask(self, request: Any, broker: int | None = None) -> Any:
        """Answer a request."""
        self.asked.append((request, broker))
        return self.answers.pop(0)

    def close(self) -> None:
        """Count it."""
        self.closed += 1


def switch(paper: Paper) -> Switch:
    return Switch(KafkaAddress(("127.0.0.1:1",)), connect=lambda _: cast("Admin", paper))


def described(error: int, **levels: str | None) -> Any:
    configs = [Bag(name=name.replace("_", "."), value=value) for name, value in levels.items()]
    return Bag(results=[Bag(error_code=error, error_message="no", configs=configs)])


def altered(error: int) -> Any:
    return Bag(responses=[Bag(error_code=error, error_message="no")])


def test_coordinators_are_asked_for_one_by_one() -> None:
    """One that is not available just now is left out."""
    paper = Paper(Bag(error_code=0, node_id=3), Bag(error_code=15, node_id=-1))
    assert switch(paper).coordinators(["g", "h"]) == {"g": 3}
    assert [(request.key, request.key_type, broker) for request, broker in paper.asked] == [
        ("g", 0, None),
        ("h", 0, None),
    ]


def test_levels_are_those_of_the_logger_and_its_parents() -> None:
    """Asked of the broker itself, and of no other logger."""
    paper = Paper(described(0, kafka_request_logger="WARN", kafka=None, root="INFO"))
    assert switch(paper).levels(2) == {LOGGER: "WARN", "root": "INFO"}
    ((request, broker),) = paper.asked
    assert (list(request.resources), broker) == ([(8, "2", [LOGGER, "kafka.request", "kafka", "root"])], 2)


def test_setting_and_unsetting_go_to_the_broker() -> None:
    """As a change of this logger alone, whatever else is set."""
    paper = Paper(altered(0), altered(0))
    one = switch(paper)
    one.set(2, "DEBUG")
    one.unset(2)
    assert [(list(request.resources), request.validate_only, broker) for request, broker in paper.asked] == [
        ([(8, "2", [(LOGGER, 0, "DEBUG")])], False, 2),
        ([(8, "2", [(LOGGER, 1, None)])], False, 2),
    ]


def test_a_refusal_says_which_permission_is_missing() -> None:
    """So that the operator knows what to grant."""
    one = switch(Paper(described(31), altered(31), Bag(error_code=30, node_id=-1)))
    with pytest.raises(NotAllowedError, match=NO_DESCRIBE):
        one.levels(1)
    with pytest.raises(NotAllowedError, match="ALTER_CONFIGS") as refused:
        one.set(1, "DEBUG")
    assert str(refused.value) == NO_ALTER
    with pytest.raises(NotAllowedError, match=NO_GROUPS):
        one.coordinators(["g"])


def test_any_other_error_is_told_as_it_is() -> None:
    """A broker before Kafka 2.4 knows no loggers."""
    with pytest.raises(OSError, match="error 42: no"):
        switch(Paper(altered(42))).set(1, "DEBUG")


def test_it_connects_anew_after_a_close() -> None:
    """One connection until then."""
    papers = [Paper(altered(0), altered(0)), Paper(altered(0))]
    left = list(papers)
    one = Switch(KafkaAddress(("127.0.0.1:1",)), connect=lambda _: cast("Admin", left.pop(0)))
    one.set(1, "INFO")
    one.set(1, "WARN")
    one.close()
    one.close()
    one.set(1, "INFO")
    assert [(paper.closed, len(paper.asked)) for paper in papers] == [(1, 2), (0, 1)]
