"""``groupwatch demo --on``: the demo's trouble on a cluster that is there, round after round.

For a stack that somebody wants to look at: another process watches.  It makes topics and groups of its own,
named as in ``plan``, and reads and writes nothing else.
"""

import logging
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from streaming import kafka_clients
from streaming.devkit.demo import plan
from streaming.devkit.demo.cast import Cast
from streaming.devkit.demo.script import LAST_S, Script
from streaming.devkit.kafka import interruptible
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import KafkaError

CALM_S = 90.0
"""Between two rounds everybody has left, so that incidents end."""
_PATIENCE_S = 180.0

_log = logging.getLogger("groupwatch.load")


class LoadError(Exception):
    """The load cannot be played; the message is for people."""


def run_load(bootstrap_servers: str, rounds: int | None = None) -> int:
    """Plays rounds until SIGTERM, or so many.

    Raises:
        LoadError: the cluster does not answer, or members do not join.
    """
    logging.getLogger("kafka").setLevel(logging.ERROR)  # clients that die leave warnings in ours
    address = KafkaAddress(tuple(bootstrap_servers.split(",")))
    try:
        with interruptible(), tempfile.TemporaryDirectory(prefix="groupwatch-load-") as folder:
            _await(lambda: _has_topics(address), f"no Kafka answers at {bootstrap_servers}")
            number = 0
            while number != rounds:
                number += 1
                _log.info("round %d begins", number)
                _play(address, Path(folder))
                if number != rounds:
                    _log.info("round %d is over; everybody has left for %.0f s", number, CALM_S)
                    time.sleep(CALM_S)
    except KeyboardInterrupt:
        _log.info("stopped")
    return 0


def _play(address: KafkaAddress, logs: Path) -> None:
    with Cast(address, logs) as cast:
        for member in plan.AT_START:
            cast.start(member)
        wanted = dict(Counter(member.group for member in plan.AT_START))
        _await(lambda: _members(address, wanted) == wanted, "the consumers did not all join")
        script, began = Script(cast, _log.info), time.monotonic()
        while (second := time.monotonic() - began) < LAST_S:
            script.play_until(second)
            time.sleep(0.1)
        cast.leave()


def _has_topics(address: KafkaAddress) -> bool:
    """Make the topics that are missing; say whether all are there."""
    admin = kafka_clients.admin_client(address)
    try:
        missing = set(plan.TOPICS) - set(admin.list_topics())
        spec = {"num_partitions": plan.PARTITIONS, "replication_factor": 1, "configs": {}}
        admin.create_topics({name: dict(spec) for name in missing}, timeout_ms=20_000, wait_for_metadata=True)
    finally:
        admin.close()
    return True


def _members(address: KafkaAddress, groups: dict[str, int]) -> dict[str, int]:
    """Return how many members each group has that is Stable."""
    admin = kafka_clients.admin_client(address)
    try:
        answers = admin.describe_groups(list(groups))
    finally:
        admin.close()
    return {name: len(one["members"]) for name, one in answers.items() if one["group_state"] == "Stable"}


def _await(holds: Callable[[], bool], trouble: str) -> None:
    """Wait until it holds; an error of Kafka is no answer.

    Raises:
        LoadError: it does not for long.
    """
    deadline, last = time.monotonic() + _PATIENCE_S, ""
    while True:
        try:
            if holds():
                return
        except (KafkaError, OSError) as error:
            last = f": {type(error).__name__}: {error}"
        if time.monotonic() > deadline:
            raise LoadError(f"{trouble} within {_PATIENCE_S:.0f} s{last}")
        time.sleep(1.0)
