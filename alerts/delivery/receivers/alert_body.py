"""What receivers say of one alert: labels, annotations, times and links, as Alertmanager spells them."""

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlencode

from alerts.alert import Alert, Culprit, printable
from alerts.delivery.silences import NO_QUIET, LiveQuiet, Quiet
from alerts.rules import nobody

ZERO_TIME = "0001-01-01T00:00:00Z"
"""What Go writes for "no time": Alertmanager's ``endsAt`` of a firing alert."""
_CULPRITS_NAMED_MAX = 5


class ReceiverContext(NamedTuple):
    """What receivers say beside the alert itself."""

    external_url: str = ""
    """Where people reach this groupwatch; "" if nobody said."""
    owner_of: Callable[[Alert], str] = lambda _alert: ""
    """Returns who owns the alert's group; "" if nobody is named."""
    quiet: Quiet | LiveQuiet = NO_QUIET
    """Silences and maintenance, for receivers that silence by themselves."""


def labels_of(alert: Alert, owner: str = "") -> dict[str, str]:
    """Return the labels, by which receivers tell alerts apart; ``owner`` only where there is one."""
    labels = {
        "alertname": alert.name,
        "cluster": alert.cluster,
        "group": alert.group,
        "severity": str(alert.severity),
    }
    return labels | ({"owner": owner} if owner else {})


def annotations_of(alert: Alert) -> dict[str, str]:
    """Return what is said about the alert; the runbook's address only where somebody can open it."""
    said = {
        "summary": alert.summary,
        "cause": alert.cause,
        "culprit": culprits_text(alert.culprits) or nobody(alert.name),
        "cost": alert.cost,
        "advice": alert.advice,
    }
    return said | ({"runbook_url": alert.runbook} if "://" in alert.runbook else {})


def page_url(alert: Alert, external_url: str) -> str:
    """Return the address of the page with the alert's group; "" if nobody knows ours."""
    if not external_url:
        return ""
    return f"{external_url.rstrip('/')}/?{urlencode({'cluster': alert.cluster, 'q': alert.group})}"


def culprits_text(culprits: tuple[Culprit, ...]) -> str:
    """Return the culprits in one line: the first few, in the rule's order, most guilty first."""
    named = [_culprit_text(culprit) for culprit in culprits[:_CULPRITS_NAMED_MAX]]
    if len(culprits) > _CULPRITS_NAMED_MAX:
        named.append(f"and {len(culprits) - _CULPRITS_NAMED_MAX} more")
    return printable("; ".join(named))


def _culprit_text(culprit: Culprit) -> str:
    who = culprit.instance_id or culprit.member_id or culprit.client_id or "unknown member"
    details = [
        f"client {culprit.client_id}" if culprit.client_id else "",
        f"host {culprit.client_host}" if culprit.client_host else "",
        f"{round(culprit.share * 100)} %" if culprit.share < 1 else "",
        str(culprit.basis),
    ]
    return f"{who} ({', '.join(detail for detail in details if detail)})"
