"""The protocol that the silent leader speaks."""

import struct

from streaming.devkit.consumers.silent_leader import SilentLeader


class ScriptedConnection:
    """Answers with what it was given, and keeps what it was asked."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int, int, bytes]] = []

    def ask(self, api: int, version: int, body: bytes) -> bytes:
        """Keeps the request and gives the next answer."""
        self.asked.append((api, version, body))
        return self.answers.pop(0)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _join_answer(error: int, generation: int, member: str) -> bytes:
    texts = _string("range") + _string("leader") + _string(member)
    return struct.pack(">ihi", 0, error, generation) + texts + struct.pack(">i", 0)


def test_the_silent_leader_joins_in_two_steps_and_never_syncs() -> None:
    """It comes back with the member id it was given, heartbeats, and asks for nothing else."""
    connection = ScriptedConnection(
        _join_answer(79, -1, "m-1"),
        _join_answer(0, 1, "m-1"),
        struct.pack(">ih", 0, 0),
        struct.pack(">ih", 0, 27),
    )
    leader = SilentLeader(connection, "g", "t", 30_000)  # type: ignore[arg-type]

    leader.join()
    alive = [leader.heartbeat(), leader.heartbeat()]

    assert alive == [True, False]
    assert [(api, version) for api, version, _ in connection.asked] == [(11, 5), (11, 5), (12, 3), (12, 3)]
    assert connection.asked[1][2].startswith(
        _string("g") + struct.pack(">ii", 30_000, 300_000) + _string("m-1")
    )
    assert connection.asked[2][2] == _string("g") + struct.pack(">i", 1) + _string("m-1") + b"\xff\xff"
