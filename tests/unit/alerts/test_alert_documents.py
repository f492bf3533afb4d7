"""The table of alerts and the runbooks keep up with the rules."""

import re
from pathlib import Path

import pytest

from alerts.rules.registry import ALL_RULES

ROOT = Path(__file__).parents[3]
NAMES = [
    "RebalanceStorm",
    "StuckPreparingRebalance",
    "StuckCompletingRebalance",
    "SessionTimeout",
    "SessionTimeoutImminent",
    "PollIntervalExceeded",
    "ZombieCommit",
    "StaticMemberFenced",
    "OffsetRewind",
    "CommitsStopped",
    "CommitsStalled",
    "LagGrowing",
    "GroupIdCollision",
    "IdleMembers",
    "UnsafeTimeouts",
    "AssignmentChurn",
    "CoordinatorMoved",
    "GroupDeleted",
    "OffsetsExpiring",
    "SourceSilent",
    "GroupsQuarantined",
    "ClusterUnreachable",
    "MonitorStalled",
]
SECTIONS = [
    "What it means",
    "Likely cause",
    "What it costs",
    "First action",
    "Confirm with Kafka's own tools",
    "Fix",
    "When it resolves",
]


def rows(heading: str = "## The alerts") -> dict[str, list[str]]:
    text = (ROOT / "alerts" / "README.md").read_text()
    found = {}
    for line in text.partition(f"\n{heading}\n")[2].partition("\n##")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name = re.fullmatch(r"`(\w+)`( \(not built yet\))?", cells[0])
        if name and len(cells) > 2:
            found[name[1]] = cells
    return found


def test_the_table_has_every_alert_of_the_contract() -> None:
    """Twenty-three names, with all eight columns filled."""
    assert sorted(rows()) == sorted(NAMES)
    assert {len(cells) for cells in rows().values()} == {8}
    assert all(cell for cells in rows().values() for cell in cells)


def test_one_table_tells_what_each_alert_means_and_what_to_do_first() -> None:
    """Meaning, cause, cost and first action of all, in the order of the other table."""
    at_a_glance = rows("### What each one tells, and what to do first")

    assert list(at_a_glance) == list(rows())
    assert {len(cells) for cells in at_a_glance.values()} == {5}
    assert all(cell for cells in at_a_glance.values() for cell in cells)


def test_the_table_says_what_is_not_built() -> None:
    """Nobody waits for an alert that cannot come."""
    marked = {name for name, cells in rows().items() if "(not built yet)" in cells[0]}

    assert marked == set(NAMES) - {rule.name for rule in ALL_RULES}


@pytest.mark.parametrize("name", NAMES)
def test_every_built_alert_has_a_runbook(name: str) -> None:
    """With all its sections, in the order in which they are needed."""
    text = (ROOT / "deploy" / "runbooks" / f"{name}.md").read_text()

    assert text.startswith(f"# {name}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS


@pytest.mark.parametrize("name", NAMES)
def test_a_runbooks_commands_can_be_pasted(name: str) -> None:
    """They say which cluster, and ask Kafka's tools for one view at a time, as these insist on."""
    text = (ROOT / "deploy" / "runbooks" / f"{name}.md").read_text().replace("\\\n", " ")
    commands = re.findall(r"^(?:`?|.*[`(])(kafka-[a-z-]+\.sh --[^`#|\n]*)", text, re.MULTILINE)

    assert [one for one in commands if "--bootstrap-server $B" not in one] == []
    views = re.compile(r"--(?:members|offsets|state)\b")
    assert [one for one in commands if len(views.findall(one)) > 1] == []
