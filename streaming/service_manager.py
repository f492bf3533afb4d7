"""What a service manager is told of this process: systemd's protocol, datagrams to the socket that it names.

Without ``NOTIFY_SOCKET`` in the environment nothing is sent.
"""

import logging
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

_log = logging.getLogger("groupwatch.service")

_STATUS_LENGTH_MAX = 500


class ServiceManager:
    """Sends READY=1 once every cluster is watched, STATUS= where that changes, and STOPPING=1 at the end."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        """Find the socket's address; "@" begins an abstract one."""
        named = environment.get("NOTIFY_SOCKET", "")
        self._address = f"\0{named[1:]}" if named.startswith("@") else named
        self._is_ready = False
        self._status = ""

    def update(self, clusters: Sequence[Mapping[str, Any]]) -> None:
        """Send what is new in the facts of ``/ready``."""
        lines = []
        if not self._is_ready and clusters and all(one["ready"] for one in clusters):
            self._is_ready = True
            lines.append("READY=1")
        status = _status(clusters)
        if status != self._status:
            self._status = status
            lines.append(f"STATUS={status}")
        if lines:
            self._send(lines)

    def stopping(self) -> None:
        """Send that the process has begun to end, however long that takes."""
        self._send(["STOPPING=1", "STATUS=stopping after the running batches"])

    def _send(self, lines: Sequence[str]) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sending:
                sending.connect(self._address)
                sending.sendall("\n".join(lines).encode())
        except OSError as error:
            _log.warning("the service manager cannot be told %s: %s", lines[0], error.strerror or error)


def _status(clusters: Sequence[Mapping[str, Any]]) -> str:
    """Return one line: which clusters are watched, and why others are not."""
    told = [f"{one['cluster']}: {'watched' if one['ready'] else _why_not(one)}" for one in clusters]
    return " ".join("; ".join(told).split())[:_STATUS_LENGTH_MAX]


def _why_not(cluster: Mapping[str, Any]) -> str:
    return str(cluster.get("standing_by") or cluster.get("error") or f"not yet, query {cluster.get('query')}")
