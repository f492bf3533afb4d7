"""The rows about a job that runs as users run it: idle, fed, started, killed, scraped."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from streaming.devkit.bench.material import Population
from streaming.devkit.bench.processes import cpu_by_kind
from streaming.devkit.bench.real_job import RealJob, Stage, Watch, await_that, fed, running, stage, told_by
from streaming.devkit.bench.rig import say
from streaming.devkit.kafka import WebhookProbe

GROUPS = 10_000
MANY_GROUPS = 100_000
TOPICS = 20
SETTLE_S = 20.0
"""From ready to the first moment that counts: what a start leaves behind is no figure of a row."""
_OFFSETS_ONLY = {"events": {"enabled": False}}


def quiet_idle(folder: Path, *, scale: float, cores: int) -> dict[str, Any]:
    """Let nothing happen, in the modes quiet and offsets; returns the row."""
    row: dict[str, Any] = {"groups": _scaled(GROUPS, scale)}
    with stage(folder, "quiet-idle", cores, _population(row["groups"])) as on:
        for mode, cluster in {"quiet": {}, "offsets": _OFFSETS_ONLY}.items():
            job = RealJob(on, f"quiet-idle-{mode}", cluster=cluster)
            row[mode] = _watched(on, job, f"quiet-idle, {mode}", 60 * scale)
    for figure in ("cpu_s_a_minute", "memory_gib"):
        row[figure] = max(row[mode][figure] for mode in ("quiet", "offsets"))
    return row


def idle(folder: Path, *, scale: float, cores: int, groups: int = GROUPS) -> dict[str, Any]:
    """Let one group in a hundred heartbeat; returns the row."""
    groups = _scaled(groups, scale)
    with stage(folder, f"idle-{groups}", cores, _population(groups)) as on:
        job = RealJob(on, f"idle-{groups}", trigger="2s")
        pace = {"every_group": 100, "beat_ms": 3_000}
        return {"groups": groups, **_watched(on, job, f"idle, {groups}", 60 * scale, pace)}


def idle_many(folder: Path, *, scale: float, cores: int) -> dict[str, Any]:
    """The same with ten times the groups."""
    return idle(folder, scale=scale, cores=cores, groups=MANY_GROUPS)


def live(folder: Path, *, scale: float, cores: int) -> dict[str, Any]:
    """Let every member heartbeat and commit; with a trigger of 5 s and with one of 2 s; returns the row."""
    row: dict[str, Any] = {"groups": _scaled(GROUPS, scale)}
    pace = {"beat_ms": 3_000, "commit_ms": 5_000, "has_commit_lines": True}
    for seconds in (5, 2):
        with stage(folder, f"live-{seconds}", cores, _population(row["groups"])) as on:
            job = RealJob(on, f"live-{seconds}", trigger=f"{seconds}s")
            row[f"trigger_{seconds}s"] = _watched(on, job, f"live, {seconds} s", 180 * scale, pace)
    return row


def trickle(folder: Path, *, scale: float, cores: int) -> dict[str, Any]:
    """Let 1,000 groups make 2,000 commits a second; returns the row."""
    with stage(folder, "trickle", cores, _population(1_000)) as on, WebhookProbe() as probe:
        job = RealJob(on, "trickle", webhook=probe.url)
        return {"groups": 1_000, **_watched(on, job, "trickle", 60 * scale, {"commit_ms": 2_500})}


def held(folder: Path, *, scale: float, cores: int) -> dict[str, Any]:
    """Hold 100,000 groups of 5 members and 32 partitions, one in a hundred active; returns the row."""
    groups = _scaled(MANY_GROUPS, scale)
    pace = {"every_group": 100, "beat_ms": 3_000, "commit_ms": 5_000, "has_commit_lines": True}
    with stage(folder, "held", cores, _population(groups, partitions=32)) as on:
        job = RealJob(on, "held", trigger="2s")
        return {"groups": groups, **_watched(on, job, "held", 120 * scale, pace)}


def workers(folder: Path, *, scale: float, cores: int) -> dict[str, Any]:
    """Let one worker of Spark with all cores do what then two with half of them do; returns the row."""
    groups = max(100, int(2_000 * min(1.0, scale)))
    pace = {"beat_ms": 3_000, "commit_ms": 5_000, "has_commit_lines": True}
    row: dict[str, Any] = {"groups": groups}
    for count in (1, 2):
        with stage(folder, f"workers-{count}", cores, _population(groups)) as on:
            master = f"local-cluster[{count},{max(1, cores // count)},1024]"
            job = RealJob(on, f"workers-{count}", trigger="2s", master=master)
            row[f"workers_{count}"] = _watched(on, job, f"workers, {count}", 60 * scale, pace)
    row["ratio"] = round(row["workers_2"]["cpu_s_a_minute"] / row["workers_1"]["cpu_s_a_minute"], 2)
    return row


def million(folder: Path, *, scale: float, cores: int) -> dict[str, Any]:
    """Hold a million groups of two members; returns the row, if this machine can."""
    groups = _scaled(1_000_000, scale)
    population = Population(groups, members=2, partitions=1, topics=TOPICS)
    with stage(folder, "million", cores, population) as on:
        job = RealJob(on, "million", trigger="10s", cluster=_OFFSETS_ONLY)
        return {"groups": groups, **_watched(on, job, "million", 60 * scale)}


def _population(groups: int, partitions: int = 8) -> Population:
    return Population(groups, partitions=partitions, topics=TOPICS)


def _scaled(count: int, scale: float) -> int:
    return max(100, int(count * min(1.0, scale)))


def _watched(
    on: Stage, job: RealJob, name: str, seconds: float, pace: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Run a job until it has settled under its load, then watch it for so long."""
    seconds = max(5.0, seconds)
    settle_s = min(SETTLE_S, seconds)
    say(f"{name}: starting")
    broker = {"broker": on.kafka.pid(1) or 0}
    with running(job) as ready_s:
        say(f"{name}: ready after {ready_s:.1f} s")
        start = {"ready_s": round(ready_s, 1), "ready_cpu_s": round(sum(cpu_by_kind(job.pid).values()), 1)}
        if pace is None:
            time.sleep(settle_s)
            return start | Watch(job, broker, on.kafka).over(seconds, name)
        # A feeder makes its lines first; the settling time is counted from its first records on.
        with fed(on.pace(settle_s + seconds, **pace)) as feeding:
            time.sleep(settle_s)
            row = start | Watch(job, broker | {"feeder": feeding.pid}, on.kafka).over(seconds, name)
            return row | {"feeder": told_by(feeding)}


# --- starts -------------------------------------------------------------------------------------------


def start(folder: Path, *, scale: float, cores: int) -> dict[str, Any]:
    """Time a first start over 1.6 million commits, of 1,000 and of 10,000 groups; returns the row."""
    row: dict[str, Any] = {}
    for groups in (1_000, 10_000):
        population = _population(_scaled(groups, scale), partitions=32)
        rounds = max(1, int(1_600_000 * scale) // (population.groups * 32))
        with stage(folder, f"start-{groups}", cores, population, rounds=rounds) as on:
            row[f"groups_{groups}"] = _started(RealJob(on, f"start-{groups}"))
    for figure in ("ready_s", "cpu_s"):
        row[figure] = max(row[f"groups_{groups}"][figure] for groups in (1_000, 10_000))
    return row


def _started(job: RealJob) -> dict[str, Any]:
    with running(job) as ready_s:
        spent = cpu_by_kind(job.pid)
        return {
            "ready_s": round(ready_s, 1),
            "cpu_s": round(sum(spent.values()), 1),
            "cpu_s_by_process": {kind: round(value, 1) for kind, value in spent.items()},
        }


def restart(folder: Path, *, scale: float, cores: int) -> dict[str, Any]:
    """Time from SIGKILL until a failure that came after it is told; 10,000 groups; returns the row."""
    groups = max(1_000, _scaled(GROUPS, scale))  # one after the other fails, and none twice
    with stage(folder, "restart", cores, _population(groups)) as on, WebhookProbe() as probe:
        job = RealJob(on, "restart", webhook=probe.url)
        with running(job), fed(on.pace(600.0, failure_ms=_FAILURE_MS)):
            began = time.monotonic()
            await_that(probe.firing, "nothing was told", 180)
            job.kill()
            killed = time.monotonic()
            # A feeder needs a moment to begin, so that these have failed after the kill for sure.
            later = int((killed - began) * 1000 / _FAILURE_MS)
            job.start()
            ready_s = job.await_ready()
            await_that(lambda: _is_told_from(probe, later), "no failure after the kill was told", 120)
            return {
                "groups": groups,
                "detecting_s": round(time.monotonic() - killed, 1),
                "ready_s": round(ready_s, 1),
            }


_FAILURE_MS = 500


def _is_told_from(probe: WebhookProbe, number: int) -> bool:
    """Return whether an alert was received about a group that failed as late as this one, or later."""
    return any(int(one.subject[1].rpartition("-")[2]) >= number for one in probe.firing() if one.subject[1])


# --- by the occasion ----------------------------------------------------------------------------------


def first_beats(folder: Path, *, scale: float, cores: int) -> dict[str, Any]:
    """Let jobs hear each member of 10,000 groups for the first time, within a second; returns the row.

    What the same job spends in as long a time after it is taken off.
    """
    groups, turns = _scaled(GROUPS, scale), 5 if scale >= 1 else 1
    with stage(folder, "first-beats", cores, _population(groups)) as on:
        spent = [_beaten_once(on, turn) for turn in range(turns)]
    net = sorted(round(one[0] - one[1], 2) for one in spent)
    return {"groups": groups, "cpu_s": net[-1], "cpu_s_min": net[0], "idle_cpu_s": [one[1] for one in spent]}


def _beaten_once(on: Stage, turn: int) -> tuple[float, float]:
    """Return the CPU seconds of the ten seconds from the first heartbeat on, and of the ten after them."""
    topic = f"events-{turn}"  # heartbeats of an earlier turn are no first ones
    on.kafka.create_topic(topic, partitions=4, configs={"message.timestamp.type": "LogAppendTime"})
    job = RealJob(on, f"first-beats-{turn}", cluster={"events": {"topic": topic}})
    with running(job):
        time.sleep(SETTLE_S / 2)
        marks = [sum(cpu_by_kind(job.pid).values())]
        with fed(on.pace(0.9, beat_ms=1_000, events_topic=topic)) as feeding:
            told_by(feeding)
            for _ in range(2):
                time.sleep(SETTLE_S / 2)
                marks.append(sum(cpu_by_kind(job.pid).values()))
    say(f"first-beats: {marks[1] - marks[0]:.1f} s, then {marks[2] - marks[1]:.1f} s")
    return round(marks[1] - marks[0], 2), round(marks[2] - marks[1], 2)


def scrape(folder: Path, *, scale: float, cores: int) -> dict[str, Any]:
    """Scrape a job with 10,000 groups five times, as Prometheus does; returns the row.

    CPU is that of the process that answers, without what it spends anyhow.
    """
    groups = _scaled(GROUPS, scale)
    with stage(folder, "scrape", cores, _population(groups)) as on:
        job = RealJob(on, "scrape", trigger="10s")
        with running(job):
            time.sleep(SETTLE_S)
            began, before = time.monotonic(), _driver_cpu_s(job)
            time.sleep(SETTLE_S)
            rate = (_driver_cpu_s(job) - before) / (time.monotonic() - began)
            turns = [_scraped(job, rate) for _ in range(5)]
    cpu = sorted(turn["cpu_s"] for turn in turns)
    return {"groups": groups, "cpu_s": cpu[-1], "cpu_s_min": cpu[0], **turns[-1]["answer"]}


def _driver_cpu_s(job: RealJob) -> float:
    return cpu_by_kind(job.pid)["driver_python"]


def _scraped(job: RealJob, rate: float) -> dict[str, Any]:
    before, began = _driver_cpu_s(job), time.monotonic()
    answer = httpx.get(
        f"{job.page}/metrics",
        headers={"Accept": "application/openmetrics-text;version=1.0.0", "Accept-Encoding": "gzip"},
        timeout=120,
    )
    took_s = time.monotonic() - began
    spent = _driver_cpu_s(job) - before - rate * took_s
    size = {
        "wall_s": round(took_s, 2),
        "bytes": len(answer.content),
        "sent_bytes": answer.num_bytes_downloaded,
    }
    return {"cpu_s": round(spent, 2), "answer": size | {"series": answer.text.count("\n")}}
