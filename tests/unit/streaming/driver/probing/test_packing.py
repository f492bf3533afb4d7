"""Answers become records that every topic takes."""

import msgspec

from streaming.control.records import GroupAnswer, MemberAnswer
from streaming.driver.probing.packing import RECORD_BYTES_MAX, packed, slim


def answer(group: str, members: int = 0, topics: int = 0) -> GroupAnswer:
    """Return an answer about a group of some size."""
    names = tuple(f"a-topic-with-an-ordinary-name-{n}" for n in range(topics))
    return GroupAnswer(
        group=group,
        group_type="classic",
        state="Stable",
        members=tuple(
            MemberAnswer(
                member_id=f"client-{n}-00000000-0000-0000-0000-000000000000",
                client_id=f"client-{n}",
                client_host="/10.0.0.1",
                topics=names,
                assigned=dict.fromkeys(names, (n,)),
            )
            for n in range(members)
        ),
    )


def test_answers_of_one_shard_stand_together() -> None:
    """Few records, each of bounded size, and nothing is lost."""
    answers = [answer(f"{n % 3}-{n}", members=20, topics=10) for n in range(90)]
    packs = list(packed(answers, lambda group: int(group[0])))
    assert [one.group for pack in packs for one in pack] == sorted(one.group for one in answers)
    assert len(packs) > 2
    assert max(len(msgspec.json.encode(pack)) for pack in packs) <= RECORD_BYTES_MAX + len(packs[0]) + 2


def test_a_large_group_goes_without_its_assignments() -> None:
    """Who is in it matters more."""
    large = slim(answer("g", members=500, topics=100))
    assert large.members is not None
    assert {(member.topics, member.assigned) for member in large.members} == {(None, None)}
    assert len(large.members) == 500


def test_a_huge_group_goes_without_its_members() -> None:
    """Its state is told all the same."""
    huge = slim(answer("g", members=5_000))
    assert (huge.members, huge.state) == (None, "Stable")


def test_nothing_to_tell_is_no_record() -> None:
    """A round without answers writes nothing."""
    assert list(packed([], len)) == []
