"""The protocol by hand: a plain connection to one broker, and the encoding of its requests and answers."""

import socket
import struct
from collections.abc import Iterator


def text(value: str | None) -> bytes:
    """Return Kafka's nullable string: two bytes of length, -1 for null."""
    if value is None:
        return struct.pack(">h", -1)
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded


def blob(value: bytes) -> bytes:
    """Return Kafka's bytes: four bytes of length before them."""
    return struct.pack(">i", len(value)) + value


def texts(answer: bytes, at: int) -> Iterator[str]:
    """Yield the strings that follow one another from byte ``at`` on."""
    while True:
        (length,) = struct.unpack_from(">h", answer, at)
        at += 2
        yield answer[at : at + max(length, 0)].decode()
        at += max(length, 0)


class Connection:
    """One plain connection to one broker, one request at a time."""

    def __init__(self, bootstrap: str, client_id: str) -> None:
        host, port = bootstrap.split(",", maxsplit=1)[0].rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)))
        self._client_id = client_id
        self._correlation = 0

    def ask(self, api: int, version: int, body: bytes) -> bytes:
        """Sends a request (header version 1) and returns the response after its correlation id."""
        self._correlation += 1
        request = struct.pack(">hhi", api, version, self._correlation) + text(self._client_id) + body
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        (length,) = struct.unpack(">i", self._read(4))
        return self._read(length)[4:]

    def _read(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            part = self._socket.recv(count - len(parts))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts += part
        return bytes(parts)

    def __enter__(self) -> "Connection":
        """Is open already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self._socket.close()
