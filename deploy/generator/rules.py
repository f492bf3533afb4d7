"""Rules for Prometheus: an alert for each of ours, recording rules, and alerts about groupwatch itself.

What groupwatch finds stands in ``groupwatch_alerts_firing``, so its alerts here have no thresholds: these are
the configuration's.  Severities are those that the alert has now.  Everything is aggregated over instances,
so that a standby or a replaced pod doubles nothing.
"""

import re
from importlib.resources import files
from typing import Any

import yaml

from alerts.rules import ALL_RULES

Rule = dict[str, Any]

_HEAD = """\
# Generated: `make monitoring` (deploy/generator/rules.py).  Alerts of groupwatch as alerts of Prometheus, and recording rules.
# With the Alertmanager receiver (`receivers:`), which says who and what it costs as well, leave this file out
# and load groupwatch-self-rules.yml alone, or everybody is paged twice.
"""
_SELF_HEAD = """\
# Generated: `make monitoring` (deploy/generator/rules.py).  Alerts about groupwatch itself; load them in any case.
"""
_URL = '{{ with query "groupwatch_external_url_info" }}{{ . | first | label "url" }}%s{{ end }}'
"""An address below the page's own; nothing while http.external_url is not set."""


def rule_files(cluster_label: str, job: str = "groupwatch") -> dict[str, str]:
    """Return the two files: path below ``deploy/`` -> YAML."""
    return {
        "prometheus/groupwatch-rules.yml": _HEAD + _yaml(group_rules(cluster_label)),
        "prometheus/groupwatch-self-rules.yml": _SELF_HEAD + _yaml(self_rules(cluster_label, job)),
    }


def group_rules(cluster_label: str) -> dict[str, Any]:
    """Return the alerts about groups and clusters, and the recording rules."""
    return {
        "groups": [
            {"name": "groupwatch", "rules": [_alert_of(rule.name, cluster_label) for rule in ALL_RULES]},
            {"name": "groupwatch-recorded", "rules": _recorded(cluster_label)},
        ]
    }


def _alert_of(name: str, c: str) -> Rule:
    means, usual, costs = (_head_of(name)[key] for key in ("means", "usual cause", "costs"))
    where = "{{ with $labels.group }}group {{ . }} of {{ end }}" + _label(c)
    page = f"/?cluster={_label(c, ' | urlquery')}&q={_label('group', ' | urlquery')}"
    return {
        "alert": name,
        "expr": f"max by ({c}, group, severity) "
        f'(groupwatch_alerts_firing{{alertname="{name}", silenced="false"}}) == 1',
        "labels": {"severity": "{{ $labels.severity }}"},
        "annotations": {
            "summary": f"{name}: {where}",
            "description": f"{_sentence(means)} Usually: {usual}. It costs: {costs}. "
            "Cause, culprit and advice are on groupwatch's page and in its API.",
            "runbook_url": _URL % f"/runbooks/{name}.md",
            "page_url": _URL % page,
        },
    }


def _recorded(c: str) -> list[Rule]:
    rebalances, lag = "groupwatch_group_rebalances_total", "groupwatch_group_lag"
    took = "groupwatch_rebalance_duration_seconds"
    recorded = {
        f"{c}_state:groupwatch_group_state:sum": f"sum by ({c}, state) (groupwatch_group_state)",
        f"{c}_group:groupwatch_group_rebalances:increase1h": f"sum by ({c}, group) (increase({rebalances}[1h]))",
        f"{c}_cause:groupwatch_group_rebalances:rate5m": f"sum by ({c}, cause) (rate({rebalances}[5m]))",
        f"{c}_group:groupwatch_group_lag:sum": f"sum by ({c}, group) ({lag})",
        f"{c}_group:groupwatch_group_lag_seconds:max": f"max by ({c}, group) ({lag}_seconds)",
        f"{c}:groupwatch_rebalance_seconds:rate5m": f"sum by ({c}) (rate({took}_sum[5m]))",
        f"{c}:groupwatch_rebalance_duration_seconds:p90_1h": f"histogram_quantile(0.9, sum by ({c}, le) (rate({took}_bucket[1h])))",
        f"{c}_severity:groupwatch_alerts_firing:sum": f'sum by ({c}, severity) (groupwatch_alerts_firing{{silenced="false"}})',
        "job:groupwatch_detection_seconds:p99_1h": "histogram_quantile(0.99, sum by (job, le) (rate(groupwatch_detection_seconds_bucket[1h])))",
    }
    return [{"record": name, "expr": expr} for name, expr in recorded.items()]


def self_rules(c: str, job: str) -> dict[str, Any]:
    """Return the alerts about groupwatch itself."""
    of = _label(c)
    seconds = '{{ $value | printf "%.0f" }} s'
    undecodable, missed = "groupwatch_undecodable_total", "groupwatch_missed_records_total"
    tried = "groupwatch_notifications_total"
    answers = f'up{{job="{job}"}} == 1'
    rules = [
        _self(
            "GroupwatchAbsent",
            f"absent({answers})",
            "2m",
            "critical",
            "No groupwatch answers: nobody watches the consumer groups",
            "It is down, is not scraped, or its scrapes fail; the page of targets in Prometheus says which.",
        ),
        _self(
            "GroupwatchDown",
            f'up{{job="{job}"}} == 0 unless on () absent({answers})',
            "5m",
            "warning",
            "groupwatch at {{ $labels.instance }} does not answer, another one does",
            "If it is the standby, nobody takes over now when the leader ends.",
        ),
        _self(
            "GroupwatchNotReady",
            f"max by ({c}) (groupwatch_ready) == 0",
            "10m",
            "critical",
            f"groupwatch does not see the groups of {of} as they are now",
            "/ready says what it waits for.",
        ),
        _self(
            "GroupwatchNoBatch",
            f"time() - max by ({c}) (groupwatch_last_batch_timestamp_seconds) > 300",
            "1m",
            "critical",
            f"No batch of {of} has ended for {seconds}",
            "Nothing is judged meanwhile. /healthz and /ready say why.",
        ),
        _self(
            "GroupwatchJobSilent",
            # Told by `groupwatch notify` where it runs apart from the job.
            f"time() - max by ({c}) (groupwatch_job_last_record_timestamp_seconds) > 120",
            "1m",
            "critical",
            f"The job of groupwatch for {of} has written nothing for {seconds}",
            "`groupwatch notify` runs, the job does not, or cannot reach Kafka.",
        ),
        _self(
            "GroupwatchBehind",
            f"min by ({c}) (groupwatch_watermark_delay_seconds) > 60",
            "3m",
            "critical",
            f"groupwatch judges {of} {seconds} late",
            "Its alerts come as much too late. /ready says why.",
        ),
        _self(
            "GroupwatchSourceLate",
            f"min by ({c}, source) (groupwatch_source_delay_seconds) > 60",
            "5m",
            "warning",
            f"groupwatch reads {{{{ $labels.source }}}} of {of} {seconds} behind the end of its topic",
            "More records come than it can read, or a partition cannot be read. /ready says which is furthest behind.",
        ),
        _self(
            "GroupwatchUndecodable",
            # A counter that appears has no increase: the first record counts too, unless groupwatch itself is new.
            f"sum by ({c}, source, reason) (increase({undecodable}[10m])) > 0 "
            f"or sum by ({c}, source, reason) ({undecodable} unless {undecodable} offset 10m) > 0 "
            f"and on ({c}) groupwatch_groups offset 10m",
            "",
            "info",
            f"groupwatch could not read records of {{{{ $labels.source }}}} in {of} ({{{{ $labels.reason }}}})",
            "Samples are kept at /api/v1/undecodable.",
        ),
        _self(
            "GroupwatchMissedRecords",
            # Counted at a start, so the counter may begin with it.
            f"sum by ({c}, topic) (increase({missed}[1h])) > 0 "
            f"or sum by ({c}, topic) ({missed} > 0 unless {missed} offset 1h > 0)",
            "",
            "warning",
            f"Records of {{{{ $labels.topic }}}} in {of} were gone before groupwatch read them "
            '({{ $value | printf "%.0f" }} at least)',
            "The topic's retention is shorter than the time in which nobody read, or the topic was made again.",
        ),
        _self(
            "GroupwatchDiverges",
            f"sum by ({c}, kind) (increase(groupwatch_divergence_total[30m])) > 5",
            "",
            "warning",
            f'groupwatch and the brokers of {of} disagreed {{{{ $value | printf "%.0f" }}}} times '
            "({{ $labels.kind }})",
            "Lines or records are missing; /api/v1/clusters has the last of them.",
        ),
        _self(
            "GroupwatchCannotNotify",
            # Attempts are repeated; what is rejected or expired is lost to the receiver.
            f'sum by (receiver) (increase({tried}{{outcome="retry"}}[10m])) > 5 '
            f'or sum by (receiver) (increase({tried}{{outcome=~"rejected|expired"}}[10m])) > 0',
            "",
            "warning",
            "Receiver {{ $labels.receiver }} does not take notifications of groupwatch",
            "/healthz says what the last attempt met.",
        ),
        _self(
            "GroupwatchUndelivered",
            "max by (receiver) (groupwatch_oldest_undelivered_seconds) > 300",
            "1m",
            "critical",
            f"An alert of groupwatch has been waiting {seconds} for receiver {{{{ $labels.receiver }}}}",
            "Nobody is paged through it. /healthz says what the last attempt met.",
        ),
        _self(
            "GroupwatchTwoLeaders",
            f"sum by ({c}) (groupwatch_leader) > 1",
            "2m",
            "critical",
            f"{{{{ $value }}}} processes of groupwatch watch {of}, each as if it were the only one",
            "Do they write to the same topics? Stop all but one.",
        ),
        _self(
            "GroupwatchNoLeader",
            f"sum by ({c}) (groupwatch_leader) == 0",
            "5m",
            "critical",
            f"No process of groupwatch watches {of}: each waits for another one",
            "/ready names the process that they wait for.",
        ),
        _self(
            "GroupwatchReloadFailed",
            "groupwatch_config_last_reload_successful == 0",
            "5m",
            "warning",
            "groupwatch at {{ $labels.instance }} could not read its configuration again",
            "The one of before holds. `groupwatch check-config FILE` names every mistake.",
        ),
        _self(
            "GroupwatchEvidenceStaysRaised",
            f"max by ({c}) (groupwatch_evidence_brokers) > 0",
            "75m",
            "warning",
            f'The request log of {{{{ $value | printf "%.0f" }}}} brokers of {of} stays raised',
            "The log of groupwatch says why it could not be put back, and how to do it by hand.",
        ),
    ]
    return {"groups": [{"name": "groupwatch-itself", "rules": rules}]}


def _self(name: str, expr: str, after: str, severity: str, summary: str, description: str) -> Rule:  # noqa: PLR0917 - the columns of a table
    return {
        "alert": name,
        "expr": expr,
        **({"for": after} if after else {}),
        "labels": {"severity": severity},
        "annotations": {"summary": summary, "description": description},
    }


def _head_of(name: str) -> dict[str, str]:
    """Return the table at the top of an alert's runbook, as plain text."""
    text = (files("alerts") / "runbooks" / f"{name}.md").read_text(encoding="utf-8").partition("\n## ")[0]
    rows = re.findall(r"^\| ([a-z ]+) \| (.+) \|$", text, re.MULTILINE)
    return {key: re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", said).replace("`", "") for key, said in rows}


def _label(name: str, function: str = "") -> str:
    return f"{{{{ $labels.{name}{function} }}}}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _yaml(content: dict[str, Any]) -> str:
    return yaml.safe_dump(content, sort_keys=False, width=1_000, allow_unicode=True)
