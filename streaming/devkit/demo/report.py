"""The demo's final report, and whether it passed."""

import json
from typing import Any

import httpx
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streaming import kafka_clients
from streaming.devkit.demo import plan
from streaming.devkit.kafka import EmbeddedKafka, ReceivedAlert
from streaming.kafka_clients import TopicPartition

_METRICS = ("groupwatch_group_rebalances_total", "groupwatch_alerts_firing", "groupwatch_group_state{")
_METRIC_LINES_MAX = 14
_TRANSITIONS_SHOWN = 10


def verdict(console: Console, told: list[ReceivedAlert]) -> bool:
    """Whether exactly the planned incidents were reported, with the right culprits; prints the answer."""
    complaints = missing(told) + unplanned(told)
    for complaint in complaints:
        console.print(f"[red]{complaint}[/red]", soft_wrap=True)
    if not complaints:
        count = len(plan.INCIDENTS)
        console.print(
            f"[green]All {count} incidents raised their alert with the right culprit, "
            "and nothing else fired.[/green]"
        )
    return not complaints


def missing(told: list[ReceivedAlert]) -> list[str]:
    """A sentence for each planned incident that was not reported, or was blamed on another client."""
    complaints = []
    for incident in plan.INCIDENTS:
        found = _of(incident, told)
        if found is None:
            complaints.append(f"{incident.alert} of {incident.group} did not arrive.")
        elif f"client {incident.culprit}," not in found.first_culprit:
            complaints.append(
                f"{incident.alert} of {incident.group} names {found.first_culprit or 'nobody'} "
                f"where {incident.culprit} did it."
            )
    return complaints


def unplanned(told: list[ReceivedAlert]) -> list[str]:
    """A sentence for each alert that nobody planned."""
    known = {(incident.alert, incident.group) for incident in plan.INCIDENTS} | plan.PERMITTED
    firing = {one.subject: one for one in told if one.status == "firing"}
    return [
        f"{name} of {group or 'the cluster'} fired, and was not planned: {one.annotations['summary']}"
        for (name, group), one in firing.items()
        if (name, group) not in known
    ]


def _of(incident: plan.Incident, told: list[ReceivedAlert]) -> ReceivedAlert | None:
    """The newest firing notification about an incident."""
    wanted = (incident.alert, incident.group)
    found = [one for one in told if one.subject == wanted and one.status == "firing"]
    return found[-1] if found else None


def print_findings(console: Console, kafka: EmbeddedKafka, page: str, told: list[ReceivedAlert]) -> None:
    """Prints the table of what was detected, some metrics and the newest transitions."""
    console.print(_table(told))
    console.print(f"\nFrom {page}/metrics:", soft_wrap=True)
    for line in _metric_lines(page):
        console.print(f"  {line}", soft_wrap=True, highlight=False, markup=False)
    console.print("\nFrom groupwatch-transitions:")
    for line in _transitions(kafka):
        console.print(f"  {line}", soft_wrap=True, highlight=False, markup=False)
    console.print()


def _table(told: list[ReceivedAlert]) -> Table:
    table = Table(title="What was detected", show_lines=True)
    for heading in ("alert", "group", "what was done", "culprit", "cause", "cost"):
        table.add_column(heading, overflow="fold")
    for incident in plan.INCIDENTS:
        found = _of(incident, told)
        texts = found.annotations if found else {}
        culprit = escape(found.first_culprit) if found else "[red]not told[/red]"
        table.add_row(
            incident.alert,
            incident.group,
            f"{incident.culprit}: {incident.what}",
            culprit,
            escape(texts.get("cause", "")),
            escape(texts.get("cost", "")),
        )
    return table


def _metric_lines(page: str) -> list[str]:
    lines = httpx.get(f"{page}/metrics", timeout=10).text.splitlines()
    shown = []
    for name in _METRICS:
        shown += [line for line in lines if line.startswith(name) and not line.endswith((" 0", " 0.0"))][:6]
    return shown[:_METRIC_LINES_MAX]


def _transitions(kafka: EmbeddedKafka) -> list[str]:
    """The newest transitions of the most troubled group, one line each."""
    found = [one for one in _read_topic(kafka, "groupwatch-transitions") if one.get("group") == "payments"]
    found.sort(key=lambda one: int(one["at_ms"]))
    return [
        f"{one['group']} generation {one['generation']}: {one['from']} -> {one['to']}, "
        f"{one['cause']['kind']} {one['cause'].get('client_id') or ''} ({one['basis']}, {one['source']})"
        for one in found[-_TRANSITIONS_SHOWN:]
    ]


def _read_topic(kafka: EmbeddedKafka, topic: str) -> list[dict[str, Any]]:
    """All records of a topic up to its present end."""
    consumer = kafka_clients.consumer(kafka.address)
    try:
        partitions = [TopicPartition(topic, n) for n in consumer.partitions_for_topic(topic) or ()]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        rows: list[dict[str, Any]] = []
        while any(consumer.position(one) < ends[one] for one in partitions):
            for records in consumer.poll(timeout_ms=500).values():
                rows += [json.loads(record.value) for record in records if record.value]
        return rows
    finally:
        consumer.close()
