"""A reverse proxy that puts the page below a path, as operators have one."""

import contextlib
import socket
import socketserver
import threading
from types import TracebackType
from typing import Self

PATH = "/groupwatch"
_PORTION = 65_536


class PathProxy:
    """Passes on what lies below its path, and nothing else."""

    def __init__(self, *, strips: bool) -> None:
        """Take a port; with ``strips`` the path is taken away before a request is passed on."""
        self.target = 0
        """The server's port."""
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _handler(self, strips=strips))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}{PATH}/"

    def __enter__(self) -> Self:
        """Listen."""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()


def _handler(proxy: PathProxy, *, strips: bool) -> type[socketserver.StreamRequestHandler]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            method, _, rest = self.rfile.readline().decode().partition(" ")
            headers = []
            while (line := self.rfile.readline().decode().strip()) != "":
                headers.append(line)
            if not rest.startswith(f"{PATH}/"):
                self.wfile.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            length = [one for one in headers if one.lower().startswith("content-length:")]
            body = self.rfile.read(int(length[0].split(":")[1])) if length else b""
            kept = [one for one in headers if not one.lower().startswith("connection:")]
            first = f"{method} {rest.removeprefix(PATH) if strips else rest}".strip()
            head = "\r\n".join([first, *kept, "Connection: close", "", ""])
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", proxy.target)) as server,
            ):
                server.sendall(head.encode() + body)
                while portion := server.recv(_PORTION):
                    self.wfile.write(portion)

    return Handler
