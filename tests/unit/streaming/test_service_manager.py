"""What systemd is told: readiness once, the state in words whenever it changes, and the end."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.service_manager import ServiceManager

WATCHED = {"cluster": "a", "ready": True, "standing_by": "", "error": "", "query": "running"}
STARTING = WATCHED | {"ready": False, "query": "starting"}


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """A service manager's socket, from which nothing is ever waited for."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.setblocking(False)
        yield listening


def _told(manager: socket.socket) -> list[str]:
    found = []
    while True:
        try:
            found += manager.recv(4096).decode().split("\n")
        except BlockingIOError:
            return found


def test_readiness_is_sent_once_when_every_cluster_is_watched(manager: socket.socket) -> None:
    """Later trouble is told in words; systemd has no word for the way back."""
    service = ServiceManager({"NOTIFY_SOCKET": manager.getsockname()})
    told = []
    for clusters in (
        [STARTING],
        [WATCHED, STARTING | {"cluster": "b", "standing_by": "another job\nis first"}],
        [WATCHED, WATCHED | {"cluster": "b"}],
        [WATCHED, WATCHED | {"cluster": "b"}],
        [WATCHED, STARTING | {"cluster": "b", "error": "no broker answers"}],
        [WATCHED, WATCHED | {"cluster": "b"}],
    ):
        service.update(clusters)
        told.append(_told(manager))
    service.stopping()

    assert told == [
        ["STATUS=a: not yet, query starting"],
        ["STATUS=a: watched; b: another job is first"],
        ["READY=1", "STATUS=a: watched; b: watched"],
        [],
        ["STATUS=a: watched; b: no broker answers"],
        ["STATUS=a: watched; b: watched"],
    ]
    assert _told(manager)[0] == "STOPPING=1"


def test_no_cluster_is_not_ready(manager: socket.socket) -> None:
    """As ``/ready`` answers."""
    ServiceManager({"NOTIFY_SOCKET": manager.getsockname()}).update([])

    assert _told(manager) == []


def test_an_abstract_socket_is_one_that_begins_with_a_zero_byte(tmp_path: Path) -> None:
    """An "@" stands for it in the variable."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{tmp_path}")
        listening.setblocking(False)
        ServiceManager({"NOTIFY_SOCKET": f"@{tmp_path}"}).stopping()

        assert _told(listening)[0] == "STOPPING=1"


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "/nowhere/at/all"}])
def test_a_service_manager_that_is_not_there_stops_nothing(environment: dict[str, str]) -> None:
    """Started by hand, or by one that went away."""
    service = ServiceManager(environment)

    service.update([WATCHED])
    service.stopping()
