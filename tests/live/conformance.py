"""Random schedules of joins, crashes, freezes, leaves and rolling restarts, judged by the broker itself.

``python tests/live/conformance.py --mode full --seconds 120 --seed 7`` starts an embedded cluster, the
job and real consumers, polls DescribeGroups five times a second, and prints agreement, missing and
extra transitions.  Exit code 0 if agreement reaches ``--require`` and nothing is missing or extra.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import comparing
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient

from streaming.embedded.kafka import EmbeddedKafka

HERE = Path(__file__).parent


class Hook:
    """A webhook receiver that remembers every alert it was sent."""

    def __init__(self) -> None:
        self.alerts: list[tuple[int, dict[str, Any]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # noqa: N802 - http.server's name
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                now = int(time.time() * 1000)
                outer.alerts += [(now, {**a, "key": self.headers.get("Idempotency-Key")}) for a in body["alerts"]]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Member:
    """One consumer process."""

    def __init__(self, bootstrap: str, group: str, name: str, client: str, *, static: bool, assignor: str) -> None:
        self.options = {
            "client": client,
            "bootstrap": bootstrap,
            "group": group,
            "client_id": name,
            "topic": "orders",
            "session_timeout_ms": 6000,
            "heartbeat_interval_ms": 1000,
            "max_poll_interval_ms": 20000,
            "assignor": assignor,
            "instance_id": name if static else None,
        }
        self.process: subprocess.Popen[bytes] | None = None
        self.frozen = False

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "consumer.py"), json.dumps(self.options)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def send(self, what: signal.Signals) -> None:
        if self.process is not None and self.running:
            self.process.send_signal(what)

    def end(self, what: signal.Signals = signal.SIGKILL) -> None:
        self.send(signal.SIGCONT)
        self.send(what)
        if self.process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(15)
            if self.running:
                self.process.kill()
                self.process.wait()


def act(rng: random.Random, members: list[Member], note: Any) -> None:
    """Do one random thing to one random member."""
    member = rng.choice(members)
    name = member.options["client_id"]
    if member.frozen:
        note(f"thaw {name}")
        member.frozen = False
        member.send(signal.SIGCONT)
    elif not member.running:
        note(f"start {name}")
        member.start()
    else:
        what = rng.choices(["leave", "kill", "freeze", "restart"], [4, 3, 1, 3])[0]
        note(f"{what} {name}")
        if what == "leave":
            member.end(signal.SIGTERM)
        elif what == "kill":
            member.end(signal.SIGKILL)
        elif what == "freeze":
            member.frozen = True
            member.send(signal.SIGSTOP)
        else:
            member.end(signal.SIGTERM)
            member.start()


def poll_states(bootstrap: str, groups: list[str], polls: list[comparing.Poll], stop: threading.Event) -> None:
    """Ask the coordinators five times a second until told to stop."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    while not stop.wait(0.2):
        for group in groups:
            asked = int(time.time() * 1000)
            try:
                answer = admin.describe_groups([group])
            except Exception:  # noqa: BLE001, S112 - a poll that failed is no evidence of anything
                continue
            state = state_of(answer, group)
            polls.append(comparing.Poll(group, state, asked, int(time.time() * 1000)))
    admin.close()


def state_of(answer: Any, group: str) -> str:
    """Dig the state out of kafka-python's answer, whatever shape this version gives it."""
    if isinstance(answer, dict):
        one = answer[group] if group in answer else next(iter(answer.values()))
    else:
        one = answer[0]
    state = one.get("group_state", one.get("state")) if isinstance(one, dict) else one.state
    return str(getattr(state, "value", state))


def read_topic(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    """Return every JSON value of a topic."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, auto_offset_reset="earliest")
    partitions = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic) or ()]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    ends = consumer.end_offsets(partitions)
    rows: list[dict[str, Any]] = []
    while any(consumer.position(p) < ends[p] for p in partitions):
        for batch in consumer.poll(timeout_ms=500).values():
            rows += [json.loads(r.value) for r in batch if r.value]
    consumer.close()
    return rows


def wait_ready(port: int, process: subprocess.Popen[bytes], seconds: float = 120) -> float:
    """Wait for /ready; return how long it took.

    Raises:
        RuntimeError: the job ended or did not become ready.
    """
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        if process.poll() is not None:
            raise RuntimeError(f"the job ended with {process.returncode}")
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=2)  # noqa: S310 - our own server
            return time.monotonic() - begun
        time.sleep(0.3)
    raise RuntimeError("the job did not become ready")


def free_port() -> int:
    """Return a port that is free now."""
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def config_text(bootstrap: str, checkpoint: Path, port: int, hook: str) -> str:
    """Return the job's configuration: defaults, one webhook."""
    return json.dumps(
        {
            "clusters": [{"name": "live", "bootstrap_servers": bootstrap.split(",")}],
            "checkpoint": str(checkpoint),
            "http": {"host": "127.0.0.1", "port": port},
            "receivers": [{"name": "hook", "webhook": {"url": hook}}],
            "routes": [{"match": {}, "receivers": ["hook"]}],
        }
    )


def start_job(config: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start ``groupwatch run`` in its own process group."""
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "streaming", "run", "--config", str(config)],
            stdout=out,
            stderr=out,
            start_new_session=True,
        )


def stop_job(process: subprocess.Popen[bytes], how: signal.Signals = signal.SIGTERM) -> int:
    """Stop the job and everything it started; return its exit code."""
    with contextlib.suppress(ProcessLookupError):
        if how == signal.SIGKILL:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.send_signal(how)
    try:
        return process.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def main() -> int:
    """Run one schedule and print the verdict."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=["full", "quiet", "requests"], default="full")
    parser.add_argument("--brokers", type=int, default=1)
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=0, help="SIGKILL the job that many times on the way")
    parser.add_argument("--require", type=float, default=0.999)
    parser.add_argument("--folder", type=Path, default=None)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    folder = args.folder or Path(tempfile.mkdtemp(prefix="groupwatch-conformance-"))
    hook = Hook()
    with EmbeddedKafka(
        brokers=args.brokers,
        data_dir=folder / "kafka",
        request_log=args.mode != "quiet",
        coordinator_log=args.mode != "requests",
    ) as kafka:
        return run_schedule(args, rng, folder, hook, kafka)


def run_schedule(args: Any, rng: random.Random, folder: Path, hook: Hook, kafka: Any) -> int:  # noqa: PLR0915
    """Drive one cluster through its schedule."""
    bootstrap = kafka.bootstrap_servers
    kafka.create_topic("orders", 6)
    port, config = free_port(), folder / "config.yaml"
    config.write_text(config_text(bootstrap, folder / "checkpoint", port, hook.url))
    job = start_job(config, folder / "job.log")
    members: list[Member] = []
    stop = threading.Event()
    try:
        print(f"ready after {wait_ready(port, job):.1f} s; {folder}")
        groups = [f"group-{i} (x)" if i == 0 else f"group-{i}" for i in range(args.groups)]
        for i, group in enumerate(groups):
            for k in range(rng.randint(1, 4)):
                client = "confluent" if i % 2 else "kafka-python"
                assignor = rng.choice(["range", "cooperative-sticky"]) if i % 4 == 3 else "range"
                members.append(
                    Member(bootstrap, group, f"{client}-{i}-{k}", client, static=i % 4 == 2, assignor=assignor)
                )
        polls: list[comparing.Poll] = []
        poller = threading.Thread(target=poll_states, args=(bootstrap, groups, polls, stop))
        poller.start()
        begun = time.monotonic()
        kills = [args.seconds * (k + 1) / (args.kills + 1) for k in range(args.kills)]

        def note(text: str) -> None:
            print(f"{time.monotonic() - begun:7.1f}  {text}", flush=True)

        while time.monotonic() - begun < args.seconds:
            act(rng, members, note)
            time.sleep(rng.uniform(0.3, 4.0))
            if kills and time.monotonic() - begun > kills[0]:
                kills.pop(0)
                note("SIGKILL the job")
                stop_job(job, signal.SIGKILL)
                job = start_job(config, folder / "job.log")
        note("settling")
        time.sleep(8)
        stop.set()
        poller.join()
        wait_ready(port, job)
        time.sleep(8)
        metrics = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()  # noqa: S310
        (folder / "metrics.txt").write_text(metrics)
        code = stop_job(job)
        print("job exit code", code)
        return verdict(args, folder, hook, kafka, polls)
    finally:
        stop.set()
        for member in members:
            member.end()
        stop_job(job)


def verdict(args: Any, folder: Path, hook: Hook, kafka: Any, polls: list[comparing.Poll]) -> int:
    """Compare, print, and keep the material in ``folder``."""
    transitions = read_topic(kafka.bootstrap_servers, "groupwatch-transitions")
    alerts = read_topic(kafka.bootstrap_servers, "groupwatch-alerts")
    (folder / "transitions.jsonl").write_text("\n".join(json.dumps(t) for t in transitions))
    (folder / "alerts.jsonl").write_text("\n".join(json.dumps(a) for a in alerts))
    (folder / "polls.jsonl").write_text("\n".join(json.dumps(vars(p)) for p in polls))
    lines = [line for log in kafka.server_logs() for line in Path(log).read_text(errors="replace").splitlines()]
    result = comparing.compare(polls, transitions, {})
    missing, extra = comparing.missing_and_extra(transitions, comparing.logged(lines))
    print(f"agreement {result.share:.5f} of {result.judged} polls; wrong: {len(result.wrong)}")
    for poll, claimed in result.wrong[:20]:
        print(f"  {poll.asked_at_ms} {poll.group}: broker {poll.state}, we {claimed}")
    print(f"transitions {len(comparing.effective(transitions))}, missing {missing[:20]}, extra {extra[:20]}")
    contents: dict[tuple[str, int], set[str]] = {}
    for alert in alerts:
        contents.setdefault((alert["id"], alert["revision"]), set()).add(json.dumps(alert, sort_keys=True))
    twofold = [key for key, found in contents.items() if len(found) > 1]
    print(f"alerts {len(contents)} revisions, with two contents: {twofold}")
    for alert in alerts:
        culprits = ", ".join(c["client_id"] for c in alert["culprits"])
        print(f"  {alert['name']} {alert['group']} r{alert['revision']} {alert['status']} {alert['severity']} [{culprits}]")
    delays = sorted(
        at - a["detected_at_ms"] for at, sent in hook.alerts for a in alerts if sent["key"] == f"{a['id']}/{a['revision']}"
    )
    if delays:
        print(f"detected to webhook: median {delays[len(delays) // 2]} ms, worst {delays[-1]} ms, n {len(delays)}")
    strict = args.mode != "requests"
    bad = result.share < args.require or twofold or (strict and (missing or extra))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
