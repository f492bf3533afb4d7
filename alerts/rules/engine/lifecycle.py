"""The life of one alert: it fires, gains revisions, and is resolved; no other module makes revisions.

At most one alert is open for each cluster, group and name.  Its id is fixed when it fires.  A revision is
made when its content changes (higher severity, more culprits, another cause, the end), not because time
passes. Every field comes from the input, so a repeat after a crash is equal.
"""

import hashlib

import msgspec

from alerts.alert import Alert, AlertStatus, Culprit, Severity, checksum, printable

LOUDNESS = {Severity.INFO: 0, Severity.WARNING: 1, Severity.CRITICAL: 2}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A rule's statement while its condition holds."""

    starts_at_ms: int
    """When the trouble began; cluster, group, name and this make the id."""
    severity: Severity
    summary: str
    cause: str
    culprits: tuple[Culprit, ...] = ()
    evidence: tuple[str, ...] = ()
    cost: str = ""
    advice: str = ""
    culprit_keys: frozenset[str] = frozenset()
    """Identifies culprits, so that new ones are noticed; empty: their member ids and bases do."""
    aspect: str = ""
    """A change of this, say another dominant cause, is worth a revision."""


class Closing(msgspec.Struct, frozen=True, kw_only=True):
    """A rule's statement when its condition no longer holds."""

    ends_at_ms: int
    summary: str
    cost: str = ""


class OpenAlert(msgspec.Struct, array_like=True, kw_only=True):
    """A firing alert as remembered: its newest revision, and what its revisions have named so far.

    Saved with the group: new fields go to the end, with a default.
    """

    alert: Alert
    told: list[int] = []
    """Checksums of the culprits of all revisions: one that drops out and returns is not new."""
    aspect: str = ""
    adopted: bool = False
    """It was adopted from the alerts topic; its history is unknown."""
    touched_ms: int = -1
    """When it was adopted (first judged), for rules that count quiet time; -1: not yet."""
    firings: int = 1
    """How often its condition began while it was open; more than once means that it flaps."""
    ended_ms: int = -1
    """When its condition ended, if damping keeps it open (``damping.py``); -1: the condition holds."""
    kept_until_ms: int = -1
    closing: tuple[str, str] = ("", "")
    """Summary and cost of that end."""


def alert_id(*, cluster: str, group: str, name: str, starts_at_ms: int) -> str:
    """Return the id of an alert that fires: 32 hex digits."""
    text = "\0".join((cluster, group, name, str(starts_at_ms)))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def runbook(name: str, base: str = "") -> str:
    """Return the address of an alert's runbook; "" if nobody has configured where the runbooks are."""
    return f"{base.rstrip('/')}/{name}.md" if base else ""


def fire(
    finding: Finding, *, cluster: str, group: str, name: str, detected_at_ms: int, runbook_base: str = ""
) -> OpenAlert:
    """Return a new alert at revision 0."""
    alert = Alert(
        id=alert_id(cluster=cluster, group=group, name=name, starts_at_ms=finding.starts_at_ms),
        revision=0,
        name=name,
        cluster=cluster,
        group=group,
        status=AlertStatus.FIRING,
        severity=finding.severity,
        starts_at_ms=finding.starts_at_ms,
        ends_at_ms=None,
        detected_at_ms=detected_at_ms,
        summary=printable(finding.summary),
        cause=printable(finding.cause),
        culprits=finding.culprits,
        evidence=tuple(map(printable, finding.evidence)),
        runbook=runbook(name, runbook_base),
        cost=printable(finding.cost),
        advice=printable(finding.advice),
    )
    return OpenAlert(alert=alert, told=sorted(_keys(finding)), aspect=finding.aspect)


def update(opened: OpenAlert, finding: Finding) -> Alert | None:
    """Return the next revision and remember it in ``opened``; None if ``finding`` adds nothing new.

    The severity of an open alert never falls: for receivers a new severity is a new label set, and trouble
    that was critical a minute ago is not over.
    """
    known, keys = set(opened.told), _keys(finding)
    louder = LOUDNESS[finding.severity] > LOUDNESS[opened.alert.severity]
    if not (louder or keys - known or finding.aspect != opened.aspect):
        return None
    is_said = opened.adopted and not opened.aspect and _says_the_same(opened.alert, finding)
    opened.told = sorted(known | keys)
    opened.aspect = finding.aspect
    if is_said and not louder:
        return None  # an earlier job told it; how it came to that is not known here
    opened.alert = msgspec.structs.replace(
        opened.alert,
        revision=opened.alert.revision + 1,
        severity=finding.severity if louder else opened.alert.severity,
        summary=printable(finding.summary),
        cause=printable(finding.cause),
        culprits=finding.culprits,
        evidence=tuple(map(printable, finding.evidence)),
        cost=printable(finding.cost),
        advice=printable(finding.advice),
    )
    return opened.alert


def _says_the_same(alert: Alert, finding: Finding) -> bool:
    named = {culprit.member_id for culprit in alert.culprits}
    return printable(finding.summary) == alert.summary and named.issuperset(
        one.member_id for one in finding.culprits
    )


def restate(opened: OpenAlert, summary: str) -> Alert:
    """Return the next revision, which differs by its summary only, and remember it in ``opened``."""
    alert = opened.alert
    opened.alert = msgspec.structs.replace(alert, revision=alert.revision + 1, summary=printable(summary))
    return opened.alert


def resolve(alert: Alert, closing: Closing) -> Alert:
    """Return the last revision of ``alert``, resolved."""
    return msgspec.structs.replace(
        alert,
        revision=alert.revision + 1,
        status=AlertStatus.RESOLVED,
        ends_at_ms=max(closing.ends_at_ms, alert.starts_at_ms),
        summary=printable(closing.summary),
        cost=printable(closing.cost) or alert.cost,
    )


def adopt(alert: Alert) -> OpenAlert:
    """Return an alert from the alerts topic as open here; its next revision is one higher."""
    keys = {checksum(f"{culprit.member_id}/{culprit.basis}") for culprit in alert.culprits}
    return OpenAlert(alert=alert, told=sorted(keys), adopted=True)


def _keys(finding: Finding) -> set[int]:
    if finding.culprit_keys:
        return {checksum(key) for key in finding.culprit_keys}
    return {checksum(f"{culprit.member_id}/{culprit.basis}") for culprit in finding.culprits}
