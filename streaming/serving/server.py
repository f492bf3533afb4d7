"""An application with its uvicorn, in a thread of this process."""

import logging
import socket
import threading

import uvicorn
from starlette.applications import Starlette

from streaming.config import ServerConfig
from streaming.serving.access import Guard
from streaming.serving.below import Below
from streaming.serving.http_limits import REQUEST_BYTES_MAX, BoundedProtocol

_LOGGER = logging.getLogger("groupwatch.http")
_STOP_TIMEOUT_S = 10.0


class Server:
    """An application with its server in a thread."""

    def __init__(self, config: ServerConfig, application: Starlette, *, below: str = "") -> None:
        """Prepare; it answers below this path as well."""
        self._config = config
        self._host, self._port = config.host, config.port
        self._server = uvicorn.Server(
            uvicorn.Config(
                Below(Guard(application, config), below),
                ssl_certfile=config.certificate or None,
                ssl_keyfile=config.key or None,
                log_config=None,
                log_level="warning",
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=2,
                http=BoundedProtocol,
                ws="none",
                h11_max_incomplete_event_size=REQUEST_BYTES_MAX,
            )
        )
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> int:
        """Listen, and return the port (needed if the configuration says 0).

        Raises:
            OSError: the address is not available, for instance because another process has it.
        """
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        # asyncio turns Nagle's algorithm off only where the protocol is named; else answers wait 40 ms.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((self._host, self._port))
        except OSError as error:
            listening.close()
            where = f"{self._host} port {self._port}"
            raise OSError(error.errno, f"cannot listen on {where}: {error.strerror}") from error
        listening.listen(128)
        self._socket = listening
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listening]}, name="http", daemon=True
        )
        self._thread.start()
        port = int(listening.getsockname()[1])
        scheme = "https" if self._config.certificate else "http"
        _LOGGER.info("%s on %s port %d", scheme, self._host, port)
        if self._config.open_to:
            _LOGGER.warning("this server %s", self._config.open_to)
        return port

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Finish the current requests and end."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(_STOP_TIMEOUT_S)
        if self._socket is not None:
            self._socket.close()
