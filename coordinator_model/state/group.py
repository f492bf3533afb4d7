"""The stored state of one group, and the transitions that the mirror emits.

Spark saves these structs (see ``shard/snapshot.py``): array-like msgpack, so **new fields go to the end with
a default**, and no field ever changes its meaning.
"""

from enum import StrEnum

import msgspec
from msgspec import UNSET, UnsetType

from coordinator_model.kafka import CauseKind, GroupState
from coordinator_model.state.costs import CostState, StepCost, ToldCost
from coordinator_model.state.modern import Modern
from coordinator_model.state.notes import Note
from coordinator_model.state.tracks import Tracks


class Basis(StrEnum):
    """How we know something."""

    OBSERVED = "observed"
    """A log line or a record reports it."""
    INFERRED = "inferred"
    """The model concluded it."""
    CANDIDATE = "candidate"
    """It is one of several possibilities."""


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a group made a transition, and which member caused it ("" where no source shows it)."""

    kind: CauseKind
    member_id: str = ""
    client_id: str = ""
    client_host: str = ""
    detail: str = ""
    """The coordinator's reason and the client's own, in their words, cut to 1,000 characters."""


class Transition(msgspec.Struct, frozen=True, kw_only=True, rename={"from_state": "from", "to_state": "to"}):
    """One change of one group's state, as written to ``groupwatch-transitions``.

    ``at_ms`` is when it happened in the coordinator; ``recorded_at_ms`` the Kafka timestamp of the record
    that showed it (for an inferred one: the deadline).  ``id`` depends on cluster, group, target state,
    generation and ``at_ms`` alone, so a repeat after a crash is byte for byte the same.
    """

    id: str
    cluster: str
    group: str
    group_type: str
    from_state: GroupState
    to_state: GroupState
    generation: int
    at_ms: int
    recorded_at_ms: int
    cause: Cause
    basis: Basis
    source: str
    """offsets, coordinator_log, request_log or model."""
    replaces: str | None = None
    cost: ToldCost | UnsetType = UNSET
    """The cost of the rebalance that ends here; absent: none ends, or only its phases are known.

    A transition to another state than Stable has the cost of the previous rebalance, whose end was inferred
    too early.
    """
    reread: int | UnsetType = UNSET
    """Records read again since the transition before, because of the last rebalance that had ended by then;

    absent: unknown, as no commit came since.
    """


class Member(msgspec.Struct, array_like=True, kw_only=True):
    """One member, as far as the sources show it; unknown numbers are -1, unknown texts ""."""

    member_id: str
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    session_timeout_ms: int = -1
    rebalance_timeout_ms: int = -1
    joined_at_ms: int = -1
    """When it first became a member (for a snapshot: the record's time); a storm is judged by it."""
    last_heartbeat_ms: int = -1
    """Last successful heartbeat in the request log; -1: none was seen, so silence proves nothing."""
    session_base_ms: int = -1
    """When the coordinator last restarted this member's session timer, as far as we saw."""
    rejoined: bool = False
    """Whether it is known to have (re)joined in the running join phase."""
    synced: bool = False
    """Whether it is known to have synced in this generation."""
    heartbeats_refused: int = 0
    """Heartbeats answered 27 since the running rebalance began: alive, and has not rejoined."""
    topics: tuple[str, ...] | None = None
    assigned: dict[str, tuple[int, ...]] | None = None
    connection: str = ""
    software: str = ""
    progressed_at_ms: int = -1
    """Last join, sync or accepted commit in the request log: proof that its poll loop was running."""
    pauses: int = 0
    """How many of its heartbeats in a row came after a pause that was a large part of its session timeout."""
    paused_until_ms: int = -1
    """When the last of these came."""
    first_beat_ms: int = -1
    """Its first heartbeat that was seen: without a second one, its interval is unknown."""
    rhythm_ms: int = -1
    """Time between its heartbeats, if that was a large part of its session lately: see ``session_timer``."""
    rhythm_until_ms: int = -1
    """When the last heartbeat came that showed it."""
    former: tuple[str, int] | None = None
    """A static member's former id, and until when answers to that id count as late."""


class Departure(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A former member, and how it left: member_left, or one of the timeouts."""

    at_ms: int
    member_id: str
    client_id: str
    client_host: str
    how: CauseKind
    joined_at_ms: int = -1
    last_heartbeat_ms: int = -1
    session_timeout_ms: int = -1
    instance_id: str | None = None
    basis: Basis = Basis.OBSERVED
    connection: str = ""
    rebalance_timeout_ms: int = -1
    progressed_at_ms: int = -1
    """As in ``Member``; with the rebalance timeout it shows a poll timeout without a reason."""
    reason: str = ""
    """The client's own reason (KIP-800), "" if it gave none."""


class Rebalance(msgspec.Struct, array_like=True, kw_only=True):
    """The running rebalance, or the last one."""

    started_at_ms: int
    old_generation: int
    cause: Cause
    initial: bool = False
    """From Empty: the coordinator waits group.initial.rebalance.delay.ms for more members."""
    joined_at_ms: int = -1
    """When the join phase ended."""
    ended_at_ms: int = -1
    """When it ended in Stable or Empty."""
    unstable_since_ms: int = -1
    """First start of a rebalance since the group was last Stable (or quietly Empty)."""
    completing_since_ms: int = -1
    """First entry to CompletingRebalance since the group was last Stable: the beginning of the loop."""
    burned: int = 0
    """Generations since then that completed the join phase and never got their assignment stored,

    without those that a newly joining member ended within a second.
    """
    silent: tuple[str, ...] = ()
    """Members that had been silent for their session timeout when the join phase ended: parked in

    it, or gone; the generation's list of members decides.
    """
    not_before_ms: int = -1
    """When the previous state began: the rebalance cannot have started earlier."""
    leader_id: str | None = None
    """The leader of the group when it began, as far as a source shows it."""
    told_at_ms: int = -1
    """When an answer first showed that it runs (no INFO log): its cause came before that."""


class Doubt(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """An answer of the brokers that differed from the mirror, kept until the next (``reconciling.py``)."""

    answered_at_ms: int
    state: str
    """The state in the answer."""
    mirror: bytes
    """Digest of the mirror's group."""


class PendingOffset(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The newest commit of a partition in a group that commits in transactions."""

    offset: int
    at_ms: int
    producer_id: int = -1
    """The producer whose open transaction it belongs to; -1: none, as far as a source shows."""
    before: tuple[int, int] | None = None
    """(offset, committed at) that counts again if the transaction aborts; None: unknown, or none."""


class Group(msgspec.Struct, array_like=True, kw_only=True):
    """One group as the mirror has it."""

    group: str
    group_type: str = "classic"
    state: GroupState = GroupState.DEAD
    state_since_ms: int = -1
    generation: int = 0
    protocol_type: str = ""
    protocol: str | None = None
    leader_id: str | None = None
    leader_basis: Basis = Basis.INFERRED
    members: dict[str, Member] = {}
    pending: dict[str, int] = {}
    """Ids that were handed out and have not joined yet -> when."""
    rebalance: Rebalance | None = None
    rebalances: dict[str, int] = {}
    """Cause kind -> rebalances started, since the mirror knows the group; survives restarts."""
    commits: dict[str, dict[int, tuple[int, int]]] = {}
    """Topic -> partition -> (offset, committed at)."""
    last_commit_ms: int = -1
    last_seen_ms: int = -1
    held_record: bytes | None = None
    """Observations that wait for their log lines: at most 8 GroupRecorded or JoinAnswered,

    oldest first (``observations.pack``).
    """
    held_until_ms: int = -1
    guesses: tuple[tuple[str, GroupState, int, int], ...] = ()
    """The last inferred transitions (id, to, generation, at_ms), so that an observation can replace them."""
    departures: tuple[Departure, ...] = ()
    """The last members that left (at most 32), newest last."""
    coordinator: int = -1
    """Broker whose log last had a line about the group."""
    stored_generation: int = -1
    """Generation of the last GroupMetadata record: where a new coordinator resumes (-1: none seen)."""
    stored_at_ms: int = -1
    """When that record was appended."""
    doubt: Doubt | None = None
    """The brokers' last answer about the group, if it did not fit."""
    stored_members: int = -1
    """How many members the last GroupMetadata record named; 0: a new coordinator finds it Empty."""
    offsets_gone_ms: int = -1
    """When the last of its committed offsets was deleted; -1: it has some, or never had any."""
    modern: Modern | None = None
    """The records of a living consumer, share or streams group; None for every other."""
    agreed_at_ms: int = -1
    """When the brokers were last asked about the group and agreed with the mirror, or corrected it."""
    claims: dict[str, dict[int, PendingOffset]] | None = None
    """Topic -> partition -> its newest commit, stored once a transaction of the group was seen."""
    refused: tuple[str, int, int] | None = None
    """The last noted refused request: member id, error, when; floods are noted once a second."""
    tracks: Tracks | None = None
    """How its partitions are consumed, since the backlog; None: no commit and no end offset since."""
    costs: CostState | None = None
    """What the cost of its rebalances is computed from; None: no rebalance since the backlog."""
    taken: tuple[int, int] | None = None
    """When another broker first answered for it, and which one did before, without an INFO log."""
    told: tuple[tuple[int, int, int, int], ...] = ()
    """The last emitted transitions: (from, to, generation, at_ms), in order (``story.py``)."""
    retold: tuple[tuple[int, int, int], ...] = ()
    """The last replaced transitions: (to, generation, at_ms); their ids are not used again."""
    ended_ms: int = -1
    """When its previous life ended; an older observation belongs to that life."""
    born_ms: int = -1
    """When this life began, as far as a source shows: an older end belongs to another life."""
    loaded_ms: int = -1
    """When its coordinator loaded it, on that broker's clock; -1: before any source showed it."""
    spoken_ms: int = -1
    """When a line of its coordinator first named a generation after that."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The remains of a group that has just ended."""

    last_commit_ms: int
    """-1: no commit was known."""
    state_since_ms: int
    """Since when it had been Empty."""
    partitions: int
    """Partitions with a committed offset; 0: they had been deleted before."""
    offsets_gone_ms: int
    """When the last of them was deleted; -1: with the group."""
    guessed: bool = False
    """Whether the source is a bare tombstone: a DeleteGroups may still be reported."""
    protocol_type: str = ""
    """"" for a group that never had members, or one of a modern protocol."""


class Step(msgspec.Struct, kw_only=True):
    """The effects of one observation or one deadline on a group; input of the rules."""

    transitions: list[Transition] = []
    departures: list[Departure] = []
    """Members that left in this step."""
    arrivals: list[str] = []
    """Member ids that were added in this step."""
    divergences: list[str] = []
    """Kinds, e.g. log_line_missing, inferred_wrong, illegal_move."""
    contradicted: bool = False
    """Whether the coordinator's INFO log should have reported this and did not."""
    notes: list[Note] = []
    """Other happenings: requests refused, static members replaced, long pauses."""
    met: bool = False
    """Whether the rules see the group for the first time, or with new settings: all it shows is news."""
    progressed: bool = False
    """Whether end offsets came, or an offset was reset: the rules about progress must look."""
    cost: StepCost | None = None
    """The cost of a rebalance that ended, or what is read again after one."""
    ended: Ended | None = None
    """The group ended in this step."""
    why_dropped: str = ""
    """For a group that is dropped for an unusual reason: a sentence for its open alerts."""
    inferred: dict[str, str] = {}
    """Id of an inferred transition -> the rule that inferred it (``groups/core/inferences.py``)."""
