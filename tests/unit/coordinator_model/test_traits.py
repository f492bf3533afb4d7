"""The table of observations has one line for each."""

import typing

import pytest

from coordinator_model import observations as on
from coordinator_model.groups import table as old_groups
from coordinator_model.groups.core import ages as old_ages
from coordinator_model.groups.newer import table as old_newer
from coordinator_model.kafka import GroupState
from coordinator_model.observations import shifting as old_shifting
from coordinator_model.observations.traits import TRAITS, AfterRecord, Concerns, types_that
from coordinator_model.ordering import order as old_order
from coordinator_model.shard import cluster as old_cluster
from coordinator_model.shard import shard as old_shard
from coordinator_model.shard import timeline as old_timeline
from coordinator_model.shard import writes as old_writes


def test_every_observation_has_one_line() -> None:
    """Nothing can be seen that the table does not know, and it knows nothing else."""
    assert set(TRAITS) == set(typing.get_args(on.AnyObservation))


def after(*kinds: AfterRecord) -> frozenset[type]:
    return types_that(lambda one: one.after_record in kinds)


A = AfterRecord


@pytest.mark.parametrize(
    ("derived", "today"),
    [
        (types_that(lambda one: one.cuts_time), old_shard._CUTS),
        (
            types_that(lambda one: one.cuts_time and one.concerns & Concerns.GROUPS),
            {*old_shard._NAMELESS, on.GroupsDeleted},
        ),
        (
            types_that(lambda one: one.cuts_time and one.concerns & Concerns.SHARD),
            {*old_shard._LEADS, *old_shard._TOLD},
        ),
        (types_that(lambda one: one.from_driver), old_order._CONTROL),
        (types_that(lambda one: one.coalesces), set(old_order.RUN_TYPES)),
        (types_that(lambda one: one.joins_write), set(old_writes._PARTS)),
        (types_that(lambda one: not one.shows_life), set(old_timeline._ENDS)),
        (types_that(lambda one: one.shows_classic_life), set(old_newer._SIGNS_OF_CLASSIC_LIFE)),
        (types_that(lambda one: one.ends_life), set(old_ages._ENDS)),
        (types_that(lambda one: one.tells_generation), set(old_groups._TELLS_GENERATION)),
        (after(A.PLACE), set(old_ages._PLACES)),
        (types_that(lambda one: one.place), set(old_ages._PLACES)),
        (
            after(A.NOTHING, A.ARRIVAL),
            {
                *old_ages._OF_MEMBERS,
                on.GroupLoaded,
                on.GroupsDeleted,
                on.GroupDied,
                on.GroupConverted,
            },
        ),
        (after(A.DEPARTURE), {*old_ages._GOINGS, on.MembersKicked}),
        (
            after(A.DEPARTURE, A.ARRIVAL),
            {*old_ages._GOINGS, on.MembersKicked, on.MemberJoined, on.MemberIdHandedOut},
        ),
        (after(A.MEMBERSHIP, A.HANDED_OUT, A.LEAVE), set(old_ages._MAY_TELL_UNKNOWN)),
        (after(A.ASSIGNMENT), {on.AssignmentReceived}),
        (
            types_that(lambda one: one.concerns & Concerns.CLUSTER),
            {*old_cluster._HANDLERS, on.Settings, on.Adopted, on.ShardRefilled},
        ),
        (types_that(lambda one: one.time_fields), set(old_shifting._FIELDS)),
    ],
)
def test_derived_sets_are_the_ones_kept_by_hand(derived: frozenset[type], today: set[type]) -> None:
    """Nothing changes when the sets go."""
    assert derived == today


def test_values_of_places_and_times() -> None:
    """What a line of the table says beside yes and no."""
    places: dict[type, GroupState | None] = {
        one: traits.place for one, traits in TRAITS.items() if traits.place
    }
    assert places == old_ages._PLACES
    assert {one: t.time_fields for one, t in TRAITS.items() if t.time_fields} == old_shifting._FIELDS
