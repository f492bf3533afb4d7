"""Services that take everything: a mail server, and what stands for chats and pagers in the Internet.

Chats and pagers have addresses of their own, so they are reached as behind a company's proxy: the environment
names a proxy, which is a twin of them all, and an authority that signed its certificate.  Nothing is patched.
"""

import contextlib
import http.client
import os
import shutil
import socket
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

HOSTS = ("events.pagerduty.com", "hooks.slack.com")
"""Which services the proxy can stand for."""


@contextmanager
def mail_server() -> Iterator[int]:
    """Take mails; yields the port."""
    with _listening(_Smtp) as port:
        yield port


@contextmanager
def services(folder: Path) -> Iterator[None]:
    """Let this process reach ``HOSTS`` through a proxy that answers for them.

    Raises:
        OSError: there is no openssl to make certificates with.
    """
    authority, signed = _certificates(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(signed)

    class Tunnel(_Tunnel):
        tls = context

    with (
        _listening(Tunnel) as port,
        _environment({"HTTPS_PROXY": f"http://127.0.0.1:{port}", "REQUESTS_CA_BUNDLE": str(authority)}),
    ):
        yield


def can_make_services() -> bool:
    """Say whether there is an openssl."""
    return shutil.which("openssl") is not None


@contextmanager
def _listening(handler: type[socketserver.StreamRequestHandler]) -> Iterator[int]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    names = [*values, "NO_PROXY", "no_proxy", "https_proxy"]
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            os.environ.pop(name, None)
        os.environ.update(before)


class _Smtp(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        """Speak until the client leaves."""
        self.wfile.write(b"220 bench\r\n")
        while line := self.rfile.readline():
            word = line.split()[0].upper()
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                while self.rfile.readline() not in (b".\r\n", b""):
                    pass
            self.wfile.write(b"250 ok\r\n")
            if word == b"QUIT":
                return


class _Tunnel(socketserver.StreamRequestHandler):
    tls: ssl.SSLContext

    def handle(self) -> None:
        """Open a tunnel to ourselves, and take one request in it."""
        self.rfile.readline()
        http.client.parse_headers(self.rfile)
        self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        with (
            contextlib.suppress(OSError),
            self.tls.wrap_socket(self.request, server_side=True) as inside,
        ):
            _take_one(inside)


def _take_one(inside: socket.socket) -> None:
    stream = inside.makefile("rwb")
    stream.readline()
    headers = http.client.parse_headers(stream)
    stream.read(int(headers["Content-Length"] or 0))
    stream.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
    stream.flush()


def _certificates(folder: Path) -> tuple[Path, Path]:
    """Make an authority, and a certificate with its key that it signed for ``HOSTS``."""
    folder.mkdir(parents=True)
    authority, authority_key, key, request, signed = (
        str(folder / f"{name}.pem") for name in ("authority", "authority-key", "key", "request", "signed")
    )
    extensions = folder / "extensions"
    extensions.write_text(f"subjectAltName={','.join(f'DNS:{host}' for host in HOSTS)}\n")
    fresh = ["-newkey", "rsa:2048", "-nodes"]
    _openssl(
        "req",
        "-x509",
        *fresh,
        "-days",
        "2",
        "-subj",
        "/CN=bench",
        "-keyout",
        authority_key,
        "-out",
        authority,
    )
    _openssl("req", *fresh, "-subj", f"/CN={HOSTS[0]}", "-keyout", key, "-out", request)
    by = ["-CA", authority, "-CAkey", authority_key, "-CAcreateserial", "-extfile", str(extensions)]
    _openssl("x509", "-req", "-in", request, "-days", "2", *by, "-out", signed)
    Path(signed).write_bytes(Path(signed).read_bytes() + Path(key).read_bytes())
    return Path(authority), Path(signed)


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
