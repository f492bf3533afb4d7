"""``groupwatch demo``: real trouble in real consumer groups, and what groupwatch says about it."""

import logging
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import yaml
from rich.console import Console

from streaming.devkit.demo import plan
from streaming.devkit.demo.cast import Cast, JobProcess
from streaming.devkit.demo.report import print_findings, verdict
from streaming.devkit.demo.script import Script
from streaming.devkit.demo.ticker import Ticker
from streaming.devkit.kafka import (
    EmbeddedKafka,
    EmbeddedKafkaError,
    WebhookProbe,
    free_ports,
    interruptible,
    uninterrupted,
)
from streaming.jars import JarError, JavaError
from streaming.kafka_clients import KafkaError

READY_SECONDS_MAX = 180.0
WATCH_SECONDS_MIN = 80.0
"""The rolling restart ends after 66 s; a false alert about it must have had time to arrive."""
WATCH_SECONDS_MAX = 180.0


class DemoError(Exception):
    """The demo could not be completed; the message says why in a sentence or two."""


def run_demo(duration: float | None = None, config_out: Path | None = None) -> int:
    """Plays the demo; 0 only if each planned incident raised its alert and nothing else fired.

    Args:
        duration: seconds to watch after the incidents begin; None: until all have been told, between
            80 seconds and three minutes.
        config_out: where to write the configuration that the job runs with.
    """
    console = Console()
    if not console.is_terminal:
        console = Console(width=140)  # a log has no width; a narrow table would be hard to read in it
    logging.getLogger("kafka").setLevel(logging.ERROR)  # clients that die leave warnings in ours
    work = Path(tempfile.mkdtemp(prefix="groupwatch-demo-"))
    try:
        with interruptible():
            passed = _play(console, work, duration, config_out)
    except (DemoError, EmbeddedKafkaError, JarError, JavaError, KafkaError, OSError) as error:
        console.print(f"[red]The demo failed:[/red] {error}", soft_wrap=True)
        passed = False
    except KeyboardInterrupt:
        console.print("Interrupted; everything that was started has been stopped.")
        passed = False
    if passed:
        shutil.rmtree(work, ignore_errors=True)
    else:
        console.print(f"Logs of Kafka, the job and the consumers are in {work}", soft_wrap=True)
    return 0 if passed else 1


def _play(console: Console, work: Path, duration: float | None, config_out: Path | None) -> bool:
    with ExitStack() as stack:
        say = _clocked(console)
        say("starting Kafka")
        kafka = stack.enter_context(EmbeddedKafka(work / "kafka"))
        for topic in plan.TOPICS:
            kafka.create_topic(topic, partitions=plan.PARTITIONS)
        probe, every = (stack.enter_context(WebhookProbe()) for _ in range(2))
        (http_port,) = free_ports(1)
        values = plan.demo_config(
            bootstrap_servers=kafka.bootstrap_servers,
            http_port=http_port,
            webhook_url=probe.url,
            every_url=every.url,
            work=work,
        )
        config = _write_config(values, work, config_out)
        say(
            f"Kafka {kafka.plan.version} is up at {kafka.bootstrap_servers}; "
            f"starting {len(plan.AT_START)} consumers"
        )
        cast = stack.enter_context(Cast(kafka.address, work))
        for member in plan.AT_START:
            cast.start(member)
        say("starting the job: groupwatch run --config …")
        with uninterrupted():
            job = stack.enter_context(JobProcess(config, work / "job.log"))
        page = f"http://127.0.0.1:{http_port}"
        _await_ready(job, page)
        _await_groups(kafka)
        say(f"the job is ready; its page is {page}/")
        ticker = Ticker(probe, say, lambda text: console.print(text, soft_wrap=True, highlight=False))
        _watch(Script(cast, say), cast, job, ticker, duration)
        print_findings(console, kafka, page, every.told)
        return verdict(console, every.told)


def _clocked(console: Console) -> Callable[[str], None]:
    began = time.monotonic()

    def say(text: str) -> None:
        console.print(
            f"[dim]{time.monotonic() - began:5.0f} s[/dim]  {text}", soft_wrap=True, highlight=False
        )

    return say


def _write_config(values: dict[str, Any], work: Path, config_out: Path | None) -> Path:
    text = "# The configuration of groupwatch demo.\n" + yaml.safe_dump(values, sort_keys=False)
    for path in (work / "groupwatch.yaml", config_out):
        if path is not None:
            path.write_text(text, encoding="utf-8")
    return work / "groupwatch.yaml"


def _await_ready(job: JobProcess, page: str) -> None:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while time.monotonic() < deadline:
        if job.exit_code is not None:
            raise DemoError(f"the job ended with code {job.exit_code}:\n{job.last_words()}")
        try:
            if httpx.get(f"{page}/ready", timeout=2).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    raise DemoError(f"the job was not ready after {READY_SECONDS_MAX:.0f} s:\n{job.last_words()}")


def _await_groups(kafka: EmbeddedKafka) -> None:
    """Waits until all members have joined: a late member looks like trouble."""
    members = Counter(member.group for member in plan.AT_START)
    wanted = {group: ("Stable", count) for group, count in members.items()}
    deadline = time.monotonic() + READY_SECONDS_MAX
    while (found := kafka.group_states(list(wanted))) != wanted:
        if time.monotonic() > deadline:
            raise DemoError(f"the consumers did not all join: {found}")
        time.sleep(0.5)


# --- the incidents --------------------------------------------------------------------------------


def _watch(script: Script, cast: Cast, job: JobProcess, ticker: Ticker, duration: float | None) -> None:
    """Plays the script and prints each message as it arrives."""
    began = time.monotonic()
    while not _is_over(time.monotonic() - began, ticker, duration):
        script.play_until(time.monotonic() - began)
        ticker.look()
        if job.exit_code is not None:
            raise DemoError(f"the job ended with code {job.exit_code}:\n{job.last_words()}")
        if cast.dead():
            raise DemoError(f"these consumers ended by themselves: {', '.join(cast.dead())}")
        time.sleep(0.1)


def _is_over(elapsed: float, ticker: Ticker, duration: float | None) -> bool:
    if duration is not None:
        return elapsed >= duration
    told = ticker.subjects()
    all_told = all((incident.alert, incident.group) in told for incident in plan.INCIDENTS)
    return elapsed >= WATCH_SECONDS_MAX or (all_told and elapsed >= WATCH_SECONDS_MIN)
