"""OffsetRewind: a commit lies far below the one before, in the same topic: records are read again."""

from alerts.alert import Severity, clock, some, span, times
from alerts.rules.engine import (
    CULPRITS_MAX,
    EVIDENCE_MAX,
    NOTHING,
    QUIET_MS,
    EventMemory,
    Finding,
    GroupRule,
    Occurrence,
    RuleOptions,
    Situation,
    Verdict,
    culprit,
    quiet_at_ms,
    until_quiet,
)
from alerts.rules.progress.group_pace import has_lived, owners, progress_of
from alerts.rules.progress.verdicts import PartitionProgress, rewinds_at
from coordinator_model.groups.offsets import ENDS_LATE_MS
from coordinator_model.kafka import GroupState
from coordinator_model.state import WINDOW, Basis, Group, Member, Rewind, Tracks

NAME = "OffsetRewind"

_TOLD_MAX = 100
_NOBODY = Member(member_id="")
_BY_HAND = (
    "Somebody set the offset while the group had no members, as kafka-consumer-groups.sh --reset-offsets "
    "does."
)
_BY_CONSUMER = (
    "A consumer committed an offset below the last committed one, of the same topic. It sought back, lost "
    "its position (auto.offset.reset), or committed late what it had read before a rebalance."
)
_BY_STRANGER = (
    "Somebody who is no member of the group committed an offset below the last committed one, of the same "
    "topic: a consumer that assigns its partitions by hand and went back, or an admin tool."
)


class Options(RuleOptions, frozen=True, kw_only=True):
    """No threshold: the rule reports events."""


def evaluate(situation: Situation) -> Verdict:
    """Return the verdict on the group."""
    tracks, memory = situation.group.tracks, situation.memory.events.get(NAME)
    opened = situation.opened(NAME)
    news, due_ms = ([], None) if tracks is None else _news(situation, tracks)
    if not news and memory is None and opened is None:
        return NOTHING if due_ms is None else Verdict(due_ms=due_ms)
    if news and tracks is not None:
        memory = _note(situation, tracks, news)
    last_ms = memory.last_ms if memory is not None else -1
    verdict = until_quiet(
        situation,
        NAME,
        last_ms=last_ms,
        finding=(lambda: _finding(situation, memory, news)) if news and memory else None,
        closing=f"Group {situation.group.group}: no commit has set an offset back for {span(QUIET_MS)}.",
        again_ms=due_ms,
    )
    if not news and situation.now_ms >= quiet_at_ms(last_ms, opened):
        situation.memory.events.pop(NAME, None)
        situation.memory.rewound = _still(situation)
    return verdict


def _news(situation: Situation, tracks: Tracks) -> tuple[list[tuple[PartitionProgress, Rewind]], int | None]:
    """Return the new rewinds, and when the next commit that may be one is certain."""
    now, told = tracks.since_base(situation.now_ms), situation.memory.rewound
    news, dues = [], []
    for part in progress_of(situation, tracks).parts:
        at, rewind = rewinds_at(part), part.track.rewind
        if at is None or rewind is None or told.get(part.name) == tracks.base_ms + rewind.at:
            continue
        at = max(at, _ends_heard_at(part))
        if at <= now:
            news.append((part, rewind))
        else:
            dues.append(tracks.base_ms + at)
    return news, min(dues, default=None)


def _ends_heard_at(part: PartitionProgress) -> int:
    """Return when the partition's end is known if anybody asks: a partition new to us has none yet.

    Only tools commit offsets beyond the end, and that repeats no record.
    """
    track = part.track
    if track.end >= 0 or track.commits >= WINDOW:
        return 0
    return part.last - track.span + ENDS_LATE_MS


def _still(situation: Situation) -> dict[str, int]:
    """Return the rewinds that are in an alert already and have not been made good."""
    tracks = situation.group.tracks
    if tracks is None:
        return {}
    parts = {part.name: part.track.rewind for part in progress_of(situation, tracks).parts}
    known = {name: tracks.base_ms + one.at for name, one in parts.items() if one is not None}
    return {name: at_ms for name, at_ms in situation.memory.rewound.items() if known.get(name) == at_ms}


def _note(situation: Situation, tracks: Tracks, news: list[tuple[PartitionProgress, Rewind]]) -> EventMemory:
    first_ms = tracks.base_ms + min(rewind.at for _, rewind in news)
    memory = situation.memory.events.setdefault(NAME, EventMemory(first_ms=first_ms, last_ms=first_ms))
    told = situation.memory.rewound
    for part, rewind in news:
        at_ms = tracks.base_ms + rewind.at
        told[part.name] = at_ms
        memory.count += 1
        memory.last_ms = max(memory.last_ms, at_ms, situation.now_ms)
        who = owners(situation.group, [part])
        memory.occurrences.append(
            Occurrence(
                culprit=who[0] if who else culprit(_NOBODY, share=0, basis=Basis.CANDIDATE),
                sentence=f"{clock(at_ms)}: {part.name} from offset {rewind.before} back to {rewind.offset}, "
                f"{times(rewind.before - rewind.offset, 'record')}.",
            )
        )
    memory.occurrences = memory.occurrences[-CULPRITS_MAX:]
    for name in list(told)[:-_TOLD_MAX]:
        del told[name]
    return memory


def _is_by_hand(group: Group) -> bool:
    """Say whether the group had no members: then only tools commit, for somebody who knows."""
    return group.state is GroupState.EMPTY and has_lived(group)


def _cause(group: Group) -> str:
    if group.state is not GroupState.EMPTY:
        return _BY_CONSUMER
    return _BY_HAND if has_lived(group) else _BY_STRANGER


def _finding(
    situation: Situation, memory: EventMemory, news: list[tuple[PartitionProgress, Rewind]]
) -> Finding:
    group, by_hand = situation.group, _is_by_hand(situation.group)
    records = sum(rewind.before - rewind.offset for _, rewind in news)
    where = some([part.name for part, _ in news])
    severity = situation.thresholds.of(Options).severity
    named = {one.culprit.member_id: one.culprit for one in memory.occurrences if one.culprit.member_id}
    return Finding(
        starts_at_ms=memory.first_ms,
        severity=Severity.INFO if by_hand else severity,
        summary=f"Group {group.group}: commits set {where} back by {times(records, 'record')}; its consumers "
        f"read {'it' if records == 1 else 'them'} again.",
        cause=_cause(group),
        culprits=tuple(named.values()),
        evidence=tuple(one.sentence for one in memory.occurrences[-EVIDENCE_MAX:]),
        cost=f"The group processes {times(records, 'record')} again.",
        advice="Did somebody reset the offsets on purpose? If not, look in the owner's log for an offset out "
        "of range or a seek. Make the processing idempotent: it happens twice.",
        aspect=str(len(str(memory.count))),
    )


OFFSET_REWIND = GroupRule(
    name=NAME,
    options=Options,
    evaluate=evaluate,
    remembers="rewound",
    blames_nobody="no member: a tool, or a client that is no member of the group",
)
