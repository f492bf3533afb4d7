"""Kafka's coordinator of a consumer group of KIP-848, as far as rules need it."""

from typing import TYPE_CHECKING, Any

from coordinator_model import observations as on
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.observations.base import Source
from coordinator_model.observations.modern_records import (
    Current,
    GroupEpoch,
    MemberMetadata,
    MemberState,
    Target,
    TargetEpoch,
)
from coordinator_model.observations.records import ModernRecord
from coordinator_model.state.modern import AWAY

if TYPE_CHECKING:
    from tests.unit.alerts.rules.conftest import Stage

GROUP, MEMBER, TARGET, MEMBERS_TARGET, CURRENT = 3, 5, 6, 7, 8
"""Record types of a consumer group."""


def record(kind: int, held: Any, member: str = "") -> ModernRecord:
    """One record; None is a tombstone."""
    return ModernRecord(
        group="orders",
        group_type="consumer",
        record_type=kind,
        name="",
        tombstone=held is None,
        member_id=member,
        part=held,
    )


class Coordinator:
    """Writes what Kafka's writes for a consumer group, and shows it to a stage."""

    def __init__(self, stage: "Stage") -> None:
        self.stage = stage
        self.epoch = 0
        self.names: list[str] = []

    def write(self, *records: ModernRecord) -> None:
        """One atomic write, with a new epoch and its target."""
        self.epoch += 1
        self.stage.wait(10)
        bump = (record(GROUP, GroupEpoch(epoch=self.epoch)), record(TARGET, TargetEpoch(epoch=self.epoch)))
        self.stage.see(on.ModernWrite(group="orders", records=(*records, *bump)), Source.OFFSETS)

    def reconcile(self) -> None:
        """Every member reaches the target."""
        for name in self.names:
            self.stage.wait(50)
            current = record(CURRENT, self.current(self.epoch), name)
            self.stage.see(on.ModernWrite(group="orders", records=(current,)), Source.OFFSETS)

    def current(self, epoch: int) -> Current:
        """Where a member stands."""
        return Current(epoch=epoch, previous_epoch=0, state=MemberState.STABLE, assigned={})

    def join(self, name: str, client: str, host: str = "/10.0.0.1", instance: str | None = None) -> None:
        """A member comes, and all get there."""
        self.names.append(name)
        metadata = MemberMetadata(client_id=client, client_host=host, topics=("t",), instance_id=instance)
        self.write(
            record(MEMBER, metadata, name),
            record(MEMBERS_TARGET, Target(assigned={}), name),
            record(CURRENT, self.current(self.epoch + 1), name),
        )
        self.reconcile()

    def go(self, name: str, how: CauseKind) -> None:
        """A member goes, which the log explains first."""
        self.names.remove(name)
        gone = on.ModernMemberGone(group="orders", member_id=name, kind=str(how), text="gone")
        self.stage.log(gone)
        self.write(*(record(kind, None, name) for kind in (CURRENT, MEMBERS_TARGET, MEMBER)))
        self.reconcile()

    def away(self, name: str) -> None:
        """A static member goes for a while."""
        self.write(record(CURRENT, self.current(AWAY), name))

    def replace(self, old: str, new: str, instance: str) -> None:
        """And comes back under another id."""
        self.names.remove(old)
        self.names.append(new)
        metadata = MemberMetadata(client_id=new, client_host="/10.0.0.1", topics=("t",), instance_id=instance)
        gone = tuple(record(kind, None, old) for kind in (CURRENT, MEMBERS_TARGET, MEMBER))
        self.write(
            *gone,
            record(MEMBER, metadata, new),
            record(MEMBERS_TARGET, Target(assigned={}), new),
            record(CURRENT, self.current(self.epoch + 1), new),
        )
        self.reconcile()
