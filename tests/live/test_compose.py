"""The stack to try groupwatch with, without containers: load, job, Alertmanager, a mail to who is on call."""

import shutil
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from streaming.devkit.kafka import free_ports
from streaming.devkit.kafka.kafka import EmbeddedKafka
from tests.live.support.stage import await_that, need_jars

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.promtool]

FOLDER = Path(__file__).parents[2] / "deploy" / "compose"
STORM = "RebalanceStorm compose payments"


class Mailbox:
    """Takes every mail."""

    def __init__(self) -> None:
        """Listens at once."""
        self.subjects: list[str] = []
        self.bodies: list[str] = []
        mailbox = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(b"220 mailbox\r\n")
                while words := self.rfile.readline().split():
                    word = words[0].upper()
                    if word == b"DATA":
                        self.wfile.write(b"354 go on\r\n")
                        mailbox.take(b"".join(iter(self.rfile.readline, b".\r\n")))
                    self.wfile.write(b"250 ok\r\n" if word != b"QUIT" else b"221 bye\r\n")

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def take(self, mail: bytes) -> None:
        """Keep the subject and the text of a mail."""
        message = message_from_bytes(mail, policy=policy.default)
        body = message.get_body(("html", "plain"))
        self.bodies.append("" if body is None else body.get_content())
        self.subjects.append(" ".join(str(message["Subject"]).split()))

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()


@dataclass
class Story:
    """What was seen of it."""

    subjects: list[str] = field(default_factory=list)
    storm: str = ""
    """The mail about the storm."""
    silenced: dict[str, str] = field(default_factory=dict)
    """Group -> state in Alertmanager, after somebody has silenced ``payments``."""


def _moved(name: str, moves: dict[str, str], into: Path) -> Path:
    """Write a file of the stack with other addresses."""
    text = (FOLDER / name).read_text()
    for before, after in moves.items():
        assert before not in moves.values()
        text = text.replace(before, after)
    path = into / name
    path.write_text(text)
    return path


@contextmanager
def _running(command: list[str], log: Path) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=log.parent, stdout=out, stderr=out)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(url, timeout=5).status_code == 200
    return False


def _alerts(url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx.get(f"{url}/api/v2/alerts", timeout=5).json()
    return found


def _states(url: str) -> dict[str, str]:
    """Return group -> the states of its alerts."""
    states: dict[str, set[str]] = {}
    for one in _alerts(url):
        states.setdefault(one["labels"].get("group", ""), set()).add(one["status"]["state"])
    return {group: "/".join(sorted(found)) for group, found in states.items()}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    if shutil.which("prometheus-alertmanager") is None:
        pytest.skip("prometheus-alertmanager is not installed")
    need_jars()
    folder = tmp_path_factory.mktemp("compose")
    manager, page = (f"127.0.0.1:{port}" for port in free_ports(2))
    groupwatch = [sys.executable, "-m", "streaming"]
    with ExitStack() as stack:
        kafka = stack.enter_context(EmbeddedKafka(folder / "kafka"))
        mailbox = Mailbox()
        stack.callback(mailbox.close)
        _moved("alertmanager.yml", {"mailbox:1025": f"127.0.0.1:{mailbox.port}"}, folder)
        moves = {
            "kafka:19092": kafka.bootstrap_servers,
            "http://alertmanager:9093": f"http://{manager}",
            "/var/lib/groupwatch": str(folder),
            "host: 0.0.0.0": f"host: 127.0.0.1, port: {page.split(':')[1]}",
        }
        config = _moved("groupwatch.yaml", moves, folder)
        options = ["--config.file=alertmanager.yml", "--cluster.listen-address=", "--storage.path=am"]
        command = ["prometheus-alertmanager", *options, f"--web.listen-address={manager}"]
        stack.enter_context(_running(command, folder / "alertmanager.log"))
        stack.enter_context(_running([*groupwatch, "run", "--config", str(config)], folder / "job.log"))
        await_that(lambda: _answers(f"http://{page}/ready"), "the job is ready")
        load = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]["load"]["command"]
        assert load[-1] == "kafka:19092"
        command = [*groupwatch, *load[:-1], kafka.bootstrap_servers]
        stack.enter_context(_running(command, folder / "load.log"))
        found = Story()
        await_that(lambda: any(STORM in one for one in mailbox.subjects), "somebody is told of the storm")
        found.storm = next(
            body for one, body in zip(mailbox.subjects, mailbox.bodies, strict=False) if STORM in one
        )
        about = ["silence", "add", "--config", str(config), "--group", "payments", "--end", "1h"]
        subprocess.run([*groupwatch, *about], check=True, capture_output=True)
        url = f"http://{manager}"
        await_that(lambda: _states(url).get("payments") == "suppressed", "payments is silenced there")
        found.silenced = _states(url)
        found.subjects = list(mailbox.subjects)
        yield found


def test_who_is_on_call_gets_mails_about_each_incident(story: Story) -> None:
    """Group, cause, culprit, cost and advice; a link to the runbook; nobody else is named."""
    told = {tuple(one.split("] ")[1].split()[:3]) for one in story.subjects}
    assert {("RebalanceStorm", "compose", "payments"), ("SessionTimeout", "compose", "payments")} <= told
    assert {group for _, _, group in told} <= {"payments", "search", "shipping", "invoices"}
    assert "payments-3" in story.storm
    assert "http://localhost:9464/runbooks/RebalanceStorm" in story.storm


def test_a_silence_is_seen_in_alertmanager(story: Story) -> None:
    """Of that group, and of no other."""
    assert story.silenced["payments"] == "suppressed"
    assert all(state == "active" for group, state in story.silenced.items() if group != "payments")
