"""What the mirror keeps of one group, and what it says when the group moves.

These structs are what Spark saves (see ``snapshot.py``): array-like msgpack, so **new fields go to
the end with a default**, and no field ever changes its meaning.
"""

from enum import StrEnum

import msgspec
from msgspec import UNSET, UnsetType

from coordinator_model.kafka import CauseKind, GroupState
from coordinator_model.state.costs import CostState, StepCost, ToldCost
from coordinator_model.state.newer import Modern
from coordinator_model.state.notes import Note
from coordinator_model.state.tracks import Tracks


class Basis(StrEnum):
    """How we know."""

    OBSERVED = "observed"
    """A log line or a record says so."""
    INFERRED = "inferred"
    """The model concluded it."""
    CANDIDATE = "candidate"
    """One of several it may be."""


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a group moved and who made it move ("" where the sources do not tell)."""

    kind: CauseKind
    member_id: str = ""
    client_id: str = ""
    client_host: str = ""
    detail: str = ""
    """The coordinator's reason and the client's own, in their words, cut to 1,000 characters."""


class Transition(msgspec.Struct, frozen=True, kw_only=True, rename={"from_state": "from", "to_state": "to"}):
    """One change of one group's state, as written to ``groupwatch-transitions``.

    ``at_ms`` is when it happened in the coordinator; ``recorded_at_ms`` the Kafka timestamp of the
    record that told us (an inferred one: the deadline).  ``id`` depends on cluster, group,
    target state, generation and ``at_ms`` alone, so a repeat after a crash is byte for byte the same.
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
    """Of the rebalance that ends here; absent: none does, or nothing is known but its phases.

    One that is not to Stable has that of the rebalance before it, whose end was inferred too early."""
    reread: int | UnsetType = UNSET
    """Records read again since the transition before, because of the last rebalance that had ended by then;
    absent: not known, as nothing was committed since."""


class Member(msgspec.Struct, array_like=True, kw_only=True):
    """One member as far as the sources tell; unknown numbers are -1, unknown texts ""."""

    member_id: str
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    session_timeout_ms: int = -1
    rebalance_timeout_ms: int = -1
    joined_at_ms: int = -1
    """When it first became a member (for a snapshot: the record's time); storms need it."""
    last_heartbeat_ms: int = -1
    """Last successful heartbeat seen in the request log; -1: none ever, so silence proves nothing."""
    session_base_ms: int = -1
    """When the coordinator last restarted this member's session timer, as far as we saw."""
    rejoined: bool = False
    """Known to have (re)joined in the running join phase."""
    synced: bool = False
    """Known to have synced in this generation."""
    heartbeats_refused: int = 0
    """Heartbeats answered 27 since the running rebalance began: alive, and has not rejoined."""
    topics: tuple[str, ...] | None = None
    assigned: dict[str, tuple[int, ...]] | None = None
    connection: str = ""
    software: str = ""
    progressed_at_ms: int = -1
    """Last join, sync or accepted commit seen in the request log: proof that its poll loop was turning."""
    pauses: int = 0
    """How many of its heartbeats came, one after the other, a large part of its session late."""
    paused_until_ms: int = -1
    """When the last of these came."""
    first_beat_ms: int = -1
    """Its first heartbeat that was seen: while there is no other, nobody knows how often it sends them."""
    rhythm_ms: int = -1
    """Time between its heartbeats, if that was a large part of its session lately: see ``session_timer``."""
    rhythm_until_ms: int = -1
    """When the last heartbeat came that told so."""
    former: tuple[str, int] | None = None
    """Of a static member that came back: the id that it had, and until when answers to that are late ones."""


class Departure(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One member that went, and how: member_left, or one of the timeouts."""

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
    """As in ``Member``; with the rebalance timeout it tells a poll timeout that gave no reason."""
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
    """First entry to CompletingRebalance since the group was last Stable: a loop's own beginning."""
    burned: int = 0
    """Generations since then that finished the join phase and never got their assignment stored,
    not counting those that a newly joining member cut short within a second."""
    silent: tuple[str, ...] = ()
    """Members that had been silent for their session timeout when the join phase ended: parked in
    it, or gone, which the generation's list of members tells."""
    not_before_ms: int = -1
    """When the state before it began: it cannot have started earlier."""
    leader_id: str | None = None
    """Who led the group when it began, as far as anything told."""
    told_at_ms: int = -1
    """When an answer first showed that it runs (no INFO log): whatever began it came before."""


class Doubt(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """An answer of the brokers that did not fit the mirror, kept until the next one (``reconciling.py``)."""

    answered_at_ms: int
    state: str
    """What the broker said."""
    mirror: bytes
    """Digest of what the mirror said."""


class Claim(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The newest commit of a partition in a group that commits in transactions."""

    offset: int
    at_ms: int
    producer_id: int = -1
    """Whose open transaction it belongs to; -1: none, as far as anything told."""
    before: tuple[int, int] | None = None
    """(offset, committed at) that counts again if the transaction aborts; None: not known, or none."""


class Group(msgspec.Struct, array_like=True, kw_only=True):
    """One group as the mirror sees it."""

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
    """Handed-out ids that have not joined yet -> when."""
    rebalance: Rebalance | None = None
    rebalances: dict[str, int] = {}
    """Cause kind -> rebalances started, since the mirror knows the group; survives restarts."""
    commits: dict[str, dict[int, tuple[int, int]]] = {}
    """Topic -> partition -> (offset, committed at)."""
    last_commit_ms: int = -1
    last_seen_ms: int = -1
    held_record: bytes | None = None
    """What ran ahead of its log lines and waits for them: at most 8 GroupRecorded or JoinAnswered,
    oldest first (``observations.pack``)."""
    held_until_ms: int = -1
    guesses: tuple[tuple[str, GroupState, int, int], ...] = ()
    """The last inferred transitions (id, to, generation, at_ms), so that an observation can replace them."""
    departures: tuple[Departure, ...] = ()
    """Members that went lately (at most 32), newest last."""
    coordinator: int = -1
    """Broker whose log spoke last about the group."""
    stored_generation: int = -1
    """Generation of the last GroupMetadata record: where a new coordinator resumes (-1: none seen)."""
    stored_at_ms: int = -1
    """When that record was appended."""
    doubt: Doubt | None = None
    """The brokers' last answer about the group, if it did not fit."""
    stored_members: int = -1
    """How many members the last GroupMetadata record named; none: a new coordinator finds it Empty."""
    offsets_gone_ms: int = -1
    """When the last of its committed offsets was deleted; -1: it has some, or never had any."""
    modern: Modern | None = None
    """The records of a living consumer, share or streams group; None for every other."""
    agreed_at_ms: int = -1
    """When the brokers were last asked about the group and the mirror said the same, or took it over."""
    claims: dict[str, dict[int, Claim]] | None = None
    """Topic -> partition -> its newest commit, kept once a transaction of the group was seen."""
    refused: tuple[str, int, int] | None = None
    """The request that was last noted as refused: member id, error, when; floods are noted once a second."""
    tracks: Tracks | None = None
    """How its partitions are consumed, since the backlog; None: no commit and no end offset since."""
    costs: CostState | None = None
    """What the cost of its rebalances is counted from; None: no rebalance since the backlog."""
    taken: tuple[int, int] | None = None
    """When another broker first answered for it, and which one had before, where no INFO log tells that."""
    told: tuple[tuple[int, int, int, int], ...] = ()
    """The last transitions told: (from, to, generation, at_ms), in the order of the story (``story.py``)."""
    retold: tuple[tuple[int, int, int], ...] = ()
    """The last ones that were replaced: (to, generation, at_ms); their ids are not used again."""
    ended_ms: int = -1
    """When its life before this one ended; what is older is about that."""
    born_ms: int = -1
    """When this life began, as far as anything told: an end that is older is another life's."""
    loaded_ms: int = -1
    """Since when its coordinator has it, on that broker's clock; -1: from before anything told of it."""
    spoken_ms: int = -1
    """When a line of its coordinator first told a generation after that."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """What a group that has just ended left behind."""

    last_commit_ms: int
    """-1: no commit was known."""
    state_since_ms: int
    """Since when it had been Empty."""
    partitions: int
    """Partitions with a committed offset; 0: they had been deleted before."""
    offsets_gone_ms: int
    """When the last of them was deleted; -1: with the group."""
    guessed: bool = False
    """A bare tombstone: that it was deleted may still be told."""
    protocol_type: str = ""
    """"" for one that never had members, or is of a newer protocol."""


class Step(msgspec.Struct, kw_only=True):
    """What one observation or one passed deadline did to a group; input of the rules."""

    transitions: list[Transition] = []
    departures: list[Departure] = []
    """Members that went in this step."""
    arrivals: list[str] = []
    """Member ids that were added in this step."""
    divergences: list[str] = []
    """Kinds, e.g. log_line_missing, inferred_wrong, illegal_move."""
    contradicted: bool = False
    """The coordinator's INFO log should have told this and did not."""
    notes: list[Note] = []
    """What happened beside that: requests refused, static members replaced, long pauses."""
    met: bool = False
    """The rules see the group as it was found, or by new settings: whatever holds now is news to them."""
    progressed: bool = False
    """End offsets were told, or an offset was set back: the rules about progress must look."""
    cost: StepCost | None = None
    """What a rebalance that ended cost, or what is read again after one."""
    ended: Ended | None = None
    """The group ended in this step."""
    why_dropped: str = ""
    """Of a group that is dropped for another reason than usual: a sentence for its open alerts."""
    inferred: dict[str, str] = {}
    """Id of an inferred transition -> the rule that inferred it (``groups/core/inferences.py``)."""
