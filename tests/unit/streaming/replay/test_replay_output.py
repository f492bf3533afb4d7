"""What replay prints as JSON."""

import json

import pytest

from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState
from coordinator_model.state.group import Basis, Cause, Transition
from streaming.replay.output import print_replay

HOSTILE = "a\x1b[2Jb\x7fc\x9bd\u202ee\u2028f\u00fc\N{PILE OF POO}"


def test_json_holds_nothing_that_steers_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Names are escaped as JSON does it, and come out as they were."""
    one = Transition(
        id="1",
        cluster="c",
        group=HOSTILE,
        group_type="classic",
        from_state=GroupState.DEAD,
        to_state=GroupState.EMPTY,
        generation=0,
        at_ms=1,
        recorded_at_ms=1,
        cause=Cause(kind=CauseKind.GROUP_CREATED),
        basis=Basis.OBSERVED,
        source="offsets",
        replaces=None,
    )
    print_replay([one], as_json=True, alerts=False)
    printed = capsys.readouterr().out

    assert printed.rstrip("\n").isascii()
    assert printed.rstrip("\n").isprintable()
    assert json.loads(printed)["group"] == HOSTILE
