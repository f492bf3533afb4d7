"""The rules' thresholds as plain values, read from the settings that travel in band.

``streaming/config/config.py`` checks what an operator wrote; this module only reads its canonical JSON.
Missing keys mean defaults and unknown keys are passed over, so that a newer driver and an older
executor, or the other way round, understand each other.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec

from alerts.alert import Severity

ENDS_TOLD_LATE_MS: Final = 15_000
"""Who keeps up is behind for less: ends are told every 10 s, and some just before a commit."""


MINUTE_MS = 60_000

_CACHED_GROUPS_MAX = 50_000
_URL_MAX = 1_000
_PATTERN_ERRORS = (KeyError, TypeError, re.error, OverflowError, RecursionError)

DurationMs = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class ThresholdsError(ValueError):
    """The settings cannot be read; the message names the rule."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What every rule has: whether it runs, and how loud its alert begins."""

    enabled: bool = True
    severity: Severity = Severity.WARNING


class RebalanceStorm(Rule, frozen=True, kw_only=True):
    """So many counted rebalances within the window are a storm."""

    rebalances: Count = 5
    window_ms: DurationMs = 10 * MINUTE_MS


class StuckPreparingRebalance(Rule, frozen=True, kw_only=True):
    """How long a join phase may last."""

    after_ms: DurationMs = 60_000


class StuckCompletingRebalance(Rule, frozen=True, kw_only=True):
    """How long a group may wait for its leader's assignment."""

    after_ms: DurationMs = 30_000


class SessionTimeout(Rule, frozen=True, kw_only=True):
    """An event; it has no threshold."""


class SessionTimeoutImminent(Rule, frozen=True, kw_only=True):
    """The share of its session timeout that a member may be silent, above 0 and below 1."""

    at: Share = 0.7


class PollIntervalExceeded(Rule, frozen=True, kw_only=True):
    """An event; it has no threshold."""


class ZombieCommit(Rule, frozen=True, kw_only=True):
    """An event; it has no threshold."""


class StaticMemberFenced(Rule, frozen=True, kw_only=True):
    """So many replacements of one instance id within the window are no restarts any more."""

    replacements: Count = 3
    window_ms: DurationMs = 10 * MINUTE_MS


class GroupIdCollision(Rule, frozen=True, kw_only=True):
    """How long members may have no topic in common; a fifth of it where their applications differ."""

    after_ms: DurationMs = 10 * MINUTE_MS


class IdleMembers(Rule, frozen=True, kw_only=True):
    """How long members may be without a partition."""

    severity: Severity = Severity.INFO
    after_ms: DurationMs = 15 * MINUTE_MS


class UnsafeTimeouts(Rule, frozen=True, kw_only=True):
    """How long the timeouts within a group may differ (as while a change is rolled out)."""

    severity: Severity = Severity.INFO
    after_ms: DurationMs = 15 * MINUTE_MS


class CommitsStopped(Rule, frozen=True, kw_only=True):
    """How long a group may commit nothing while records wait, whatever its habit is."""

    after_ms: DurationMs = 90_000


class CommitsStalled(Rule, frozen=True, kw_only=True):
    """How long a group may commit the same offset while records wait, whatever its habit is."""

    after_ms: DurationMs = MINUTE_MS


class LagGrowing(Rule, frozen=True, kw_only=True):
    """How long the lag must have grown without a break."""

    window_ms: DurationMs = 4 * MINUTE_MS


class OffsetRewind(Rule, frozen=True, kw_only=True):
    """An event; it has no threshold."""


class AssignmentChurn(Rule, frozen=True, kw_only=True):
    """So many rebalances within the window that moved so many partitions for nothing."""

    severity: Severity = Severity.INFO
    rebalances: Count = 3
    partitions: Count = 10
    window_ms: DurationMs = 60 * MINUTE_MS


class CoordinatorMoved(Rule, frozen=True, kw_only=True):
    """How many groups must rebalance because of one move."""

    severity: Severity = Severity.INFO
    affected: Count = 3


class GroupDeleted(Rule, frozen=True, kw_only=True):
    """How long before its end a group must have been in use."""

    severity: Severity = Severity.INFO
    within_ms: DurationMs = 24 * 60 * MINUTE_MS


class OffsetsExpiring(Rule, frozen=True, kw_only=True):
    """How long before the offsets go it is told; a third of the retention if that is less."""

    left_ms: DurationMs = 24 * 60 * MINUTE_MS


class SourceSilent(Rule, frozen=True, kw_only=True):
    """How long a request log that used to speak may be silent while the cluster lives."""

    after_ms: DurationMs = MINUTE_MS


class GroupsQuarantined(Rule, frozen=True, kw_only=True):
    """Our own failures; it has no threshold."""


class ClusterUnreachable(Rule, frozen=True, kw_only=True):
    """How long a cluster may give no answer at all."""

    severity: Severity = Severity.CRITICAL
    after_ms: DurationMs = MINUTE_MS


class MonitorStalled(Rule, frozen=True, kw_only=True):
    """How long no batch may finish while Kafka answers."""

    severity: Severity = Severity.CRITICAL
    after_ms: DurationMs = 2 * MINUTE_MS


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """All rules as they hold for one group."""

    rebalance_storm: RebalanceStorm = RebalanceStorm()
    stuck_preparing_rebalance: StuckPreparingRebalance = StuckPreparingRebalance()
    stuck_completing_rebalance: StuckCompletingRebalance = StuckCompletingRebalance()
    session_timeout: SessionTimeout = SessionTimeout()
    session_timeout_imminent: SessionTimeoutImminent = SessionTimeoutImminent()
    poll_interval_exceeded: PollIntervalExceeded = PollIntervalExceeded()
    source_silent: SourceSilent = SourceSilent()
    cluster_unreachable: ClusterUnreachable = ClusterUnreachable()
    monitor_stalled: MonitorStalled = MonitorStalled()
    zombie_commit: ZombieCommit = ZombieCommit()
    static_member_fenced: StaticMemberFenced = StaticMemberFenced()
    group_id_collision: GroupIdCollision = GroupIdCollision()
    idle_members: IdleMembers = IdleMembers()
    unsafe_timeouts: UnsafeTimeouts = UnsafeTimeouts()
    commits_stopped: CommitsStopped = CommitsStopped()
    commits_stalled: CommitsStalled = CommitsStalled()
    lag_growing: LagGrowing = LagGrowing()
    offset_rewind: OffsetRewind = OffsetRewind()
    assignment_churn: AssignmentChurn = AssignmentChurn()
    coordinator_moved: CoordinatorMoved = CoordinatorMoved()
    group_deleted: GroupDeleted = GroupDeleted()
    offsets_expiring: OffsetsExpiring = OffsetsExpiring()
    groups_quarantined: GroupsQuarantined = GroupsQuarantined()


RULE_KEYS: Mapping[str, str] = {
    "RebalanceStorm": "rebalance_storm",
    "StuckPreparingRebalance": "stuck_preparing_rebalance",
    "StuckCompletingRebalance": "stuck_completing_rebalance",
    "SessionTimeout": "session_timeout",
    "SessionTimeoutImminent": "session_timeout_imminent",
    "PollIntervalExceeded": "poll_interval_exceeded",
    "SourceSilent": "source_silent",
    "ClusterUnreachable": "cluster_unreachable",
    "MonitorStalled": "monitor_stalled",
    "ZombieCommit": "zombie_commit",
    "StaticMemberFenced": "static_member_fenced",
    "GroupIdCollision": "group_id_collision",
    "IdleMembers": "idle_members",
    "UnsafeTimeouts": "unsafe_timeouts",
    "CommitsStopped": "commits_stopped",
    "CommitsStalled": "commits_stalled",
    "LagGrowing": "lag_growing",
    "OffsetRewind": "offset_rewind",
    "AssignmentChurn": "assignment_churn",
    "CoordinatorMoved": "coordinator_moved",
    "GroupDeleted": "group_deleted",
    "OffsetsExpiring": "offsets_expiring",
    "GroupsQuarantined": "groups_quarantined",
}
"""Alert name -> key of its rule."""

DEFAULTS = Thresholds()

_Override = tuple[tuple["re.Pattern[str]", ...], dict[str, Any]]
_RuleT = TypeVar("_RuleT", bound=Rule)


class Settings:
    """The rules as configured; answers which thresholds hold for a group."""

    def __init__(self, settings: bytes = b"{}") -> None:
        """Read canonical JSON.

        Raises:
            ThresholdsError: it is no JSON object, or a rule in it cannot be read.
        """
        raw = _read_object(settings)
        rules = _object(raw.get("rules"), "rules")
        self.runbook_base: str = str(raw.get("runbook_base") or "")[:_URL_MAX]
        self._plain: dict[str, dict[str, Any]] = {}
        self._overrides: dict[str, list[_Override]] = {}
        for key in RULE_KEYS.values():
            self._read_rule(key, _object(rules.get(key), f"rules.{key}"))
        self.defaults = self._build({})
        self._groups: dict[str, Thresholds] = {}
        self._variants: dict[tuple[tuple[str, int], ...], Thresholds] = {}
        self._check_overrides()

    def of_group(self, group: str) -> Thresholds:
        """Return what holds for ``group``: of each rule the first override whose pattern matches in full."""
        if not self._overrides:
            return self.defaults
        found = self._groups.get(group)
        if found is None:
            if len(self._groups) >= _CACHED_GROUPS_MAX:
                self._groups.clear()
            found = self._groups[group] = self._variant(self._chosen(group))
        return found

    def _read_rule(self, key: str, raw: dict[str, Any]) -> None:
        self._plain[key] = {name: value for name, value in raw.items() if name != "overrides"}
        told = raw.get("overrides") or []
        if not isinstance(told, list):
            raise ThresholdsError(f"rules.{key}.overrides: no list")
        overrides = [_read_override(key, override) for override in told]
        if overrides:
            self._overrides[key] = overrides

    def _chosen(self, group: str) -> dict[str, int]:
        chosen = {}
        for key, overrides in self._overrides.items():
            for index, (patterns, _) in enumerate(overrides):
                if any(pattern.fullmatch(group) for pattern in patterns):
                    chosen[key] = index
                    break
        return chosen

    def _variant(self, chosen: dict[str, int]) -> Thresholds:
        # Groups with the same overrides share one object, so 100,000 groups cost a dictionary entry each.
        name = tuple(chosen.items())
        if name not in self._variants:
            self._variants[name] = self._build(chosen)
        return self._variants[name]

    def _build(self, chosen: dict[str, int]) -> Thresholds:
        rules = {}
        for key, plain in self._plain.items():
            changed = self._overrides[key][chosen[key]][1] if key in chosen else {}
            rules[key] = _convert(key, {**plain, **changed}, type(getattr(DEFAULTS, key)))
        return Thresholds(**rules)

    def _check_overrides(self) -> None:
        # An override that cannot be read must be found now, not when its first group comes along.
        for key, overrides in self._overrides.items():
            for index in range(len(overrides)):
                self._build({key: index})


def check_settings(settings: bytes) -> None:
    """Check that the rules can use these settings.

    Raises:
        ThresholdsError: they cannot.
    """
    Settings(settings)


def _read_object(settings: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(settings, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ThresholdsError(f"settings are no JSON object: {error}") from error


def _object(found: Any, where: str) -> dict[str, Any]:
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ThresholdsError(f"{where}: no object")
    return found


def _read_override(key: str, found: Any) -> _Override:
    raw = _object(found, f"rules.{key}.overrides")
    try:
        patterns = tuple(re.compile(pattern) for pattern in raw["groups"])
    except _PATTERN_ERRORS as error:
        raise ThresholdsError(f"rules.{key}.overrides: groups: {error!r}") from error
    return patterns, {name: value for name, value in raw.items() if name != "groups" and value is not None}


def _convert(key: str, raw: dict[str, Any], kind: type[_RuleT]) -> _RuleT:
    try:
        return msgspec.convert(raw, kind)
    except (msgspec.ValidationError, TypeError, OverflowError) as error:
        raise ThresholdsError(f"rules.{key}: {error}") from error
