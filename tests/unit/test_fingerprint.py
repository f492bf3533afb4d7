"""The fingerprint: it is the same wherever it is taken, sees what changed, and no words."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from alerts.alert.alert import Alert, AlertStatus, Severity
from coordinator_model.state.tracks import Track
from tests.fingerprint.__main__ import differences, table
from tests.fingerprint.marks import essence, sources
from tests.fingerprint.worlds import load

ROOT = Path(__file__).parents[2]
FEW = "-017"
ALERT = Alert(
    id="a",
    revision=0,
    name="RebalanceStorm",
    cluster="c",
    group="g",
    status=AlertStatus.FIRING,
    severity=Severity.WARNING,
    starts_at_ms=1,
    ends_at_ms=None,
    detected_at_ms=2,
    summary="Somebody leaves.",
    cause="member_left",
)


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    """Neither the hash seed of a process nor what it did before changes the hashes."""
    printed = subprocess.run(
        [sys.executable, "-m", "tests.fingerprint", "--only", FEW],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    here = "".join(f"{line}\n" for line in table({name: play().marks() for name, play in sources(FEW)}))

    assert printed == here
    assert "    4 world" in here


def test_500_worlds_are_stored() -> None:
    """A fingerprint of no worlds would prove nothing."""
    worlds = load()

    assert len({world.name for world in worlds}) == 500
    assert all(world.batches for world in worlds)


def test_other_words_are_no_other_alert() -> None:
    """A better sentence leaves the fingerprint as it is; another culprit, time or severity does not."""
    reworded = msgspec.structs.replace(ALERT, summary="A member leaves.", advice="Look at it.")
    louder = msgspec.structs.replace(ALERT, severity=Severity.CRITICAL)

    assert essence(reworded) == essence(ALERT) != essence(louder)


def test_a_field_with_its_default_is_not_told() -> None:
    """A saved struct that gains a field says what it said, as long as nobody fills the field."""
    assert essence(Track(commits=3, woken=-1)) == {"commits": 3}


def test_what_differs_is_named() -> None:
    """Whoever compares two checkouts is told which world to look at, and where."""
    before = {"world-a": ["1", "2", "3"], "world-b": ["1", "2", "3"], "story-c": ["1", "2", "3"]}
    now = {"world-a": ["1", "2", "3"], "world-b": ["1", "x", "y"], "story-d": ["1", "2", "3"]}

    assert [*differences(before, now)] == [
        "story-c: only before",
        "story-d: only now",
        "world-b: alerts, blobs",
    ]
