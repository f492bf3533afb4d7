"""Services as they look from outside: a proxy behind which every HTTPS address answers, and a mail server."""

import contextlib
import http.client
import json
import socket
import socketserver
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


def certificates(folder: Path, *hosts: str) -> tuple[Path, Path]:
    """Make an authority, and a certificate with its key for these hosts; return both files."""
    ca, ca_key, key, request, signed = (
        folder / f"{name}.pem" for name in ("ca", "ca-key", "key", "csr", "both")
    )
    extensions = folder / "extensions"
    names = ",".join(f"DNS:{host}" for host in hosts)
    extensions.write_text(f"subjectAltName={names}\n")
    own = ["-newkey", "rsa:2048", "-nodes", "-days", "2"]
    for arguments in (
        ["req", "-x509", *own, "-subj", "/CN=our authority", "-keyout", str(ca_key), "-out", str(ca)],
        ["req", *own[:3], "-subj", f"/CN={hosts[0]}", "-keyout", str(key), "-out", str(request)],
        [
            *("x509", "-req", "-in", str(request), "-CA", str(ca), "-CAkey", str(ca_key), "-days", "2"),
            *("-CAcreateserial", "-extfile", str(extensions), "-out", str(signed)),
        ],
    ):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)
    signed.write_bytes(signed.read_bytes() + key.read_bytes())
    return ca, signed


class Asked(NamedTuple):
    """One request."""

    host: str
    path: str
    body: Any


class HttpsTwins:
    """A proxy that opens every tunnel to itself and answers there for whatever host is asked."""

    def __init__(self, certificate: Path) -> None:
        self.asked: list[Asked] = []
        self.status = 200
        self.statuses: list[int] = []
        """Of the next answers, before ``status``."""
        self.delay_s = 0.0
        """How long each answer takes."""
        self.answer = "ok"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        twins = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                """Open a tunnel, and answer in it."""
                host = self.rfile.readline().split()[1].decode().partition(":")[0]
                http.client.parse_headers(self.rfile)
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                with (
                    contextlib.suppress(OSError),
                    context.wrap_socket(self.request, server_side=True) as inside,
                ):
                    twins._converse(host, inside)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def _converse(self, host: str, inside: socket.socket) -> None:
        stream = inside.makefile("rwb")
        path = stream.readline().split()[1].decode()
        headers = http.client.parse_headers(stream)
        body = stream.read(int(headers["Content-Length"] or 0))
        self.asked.append(Asked(host, path, json.loads(body)))
        time.sleep(self.delay_s)
        status = self.statuses.pop(0) if self.statuses else self.status
        head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(self.answer)}\r\nConnection: close\r\n\r\n"
        stream.write(f"{head}{self.answer}".encode())
        stream.flush()

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()


class MailTwin:
    """A mail server that keeps what it gets; ``refuses`` makes it say no.

    With a certificate it takes mails only after STARTTLS.
    """

    def __init__(self, certificate: Path | None = None) -> None:
        self.mails: list[str] = []
        self.logins: list[str] = []
        """What clients said to log in."""
        self.refuses = False
        self.tls: ssl.SSLContext | None = None
        if certificate is not None:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(certificate)
        twin = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):
                    _MailTalk(twin, self.request).go_on()

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.port: int = self._server.server_address[1]

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()


class _MailTalk:
    """One client that speaks SMTP with a twin."""

    def __init__(self, twin: MailTwin, connection: socket.socket) -> None:
        self._twin = twin
        self._connection = connection
        self._stream = connection.makefile("rwb")
        self._is_open = twin.tls is None
        self._answers: dict[str, Callable[[str], str]] = {
            "EHLO": lambda _: f"250-twin\r\n250 {'AUTH PLAIN' if self._is_open else 'STARTTLS'}",
            "STARTTLS": self._secure,
            "AUTH": self._log_in,
            "MAIL": lambda _: "550 no" if twin.refuses else "250 ok",
            "DATA": self._take,
        }

    def go_on(self) -> None:
        """Answer until the client leaves."""
        self._say("220 twin")
        while words := self._stream.readline().decode().split():
            word = words[0].upper()
            if not self._is_open and word not in ("EHLO", "STARTTLS", "QUIT"):
                self._say("530 first STARTTLS")
                continue
            answer = self._answers.get(word)
            self._say("250 ok" if answer is None else answer(words[-1]))
            if word == "QUIT":
                return

    def _secure(self, _: str) -> str:
        assert self._twin.tls is not None
        self._say("220 go on")
        self._connection = self._twin.tls.wrap_socket(self._connection, server_side=True)
        self._stream = self._connection.makefile("rwb")
        self._is_open = True
        return ""

    def _log_in(self, said: str) -> str:
        self._twin.logins.append(said)
        return "235 ok"

    def _take(self, _: str) -> str:
        self._say("354 go on")
        lines = []
        while (line := self._stream.readline()) not in (b".\r\n", b""):
            lines.append(line)
        self._twin.mails.append(b"".join(lines).decode())
        return "250 ok"

    def _say(self, text: str) -> None:
        if text:
            self._stream.write(f"{text}\r\n".encode())
            self._stream.flush()
