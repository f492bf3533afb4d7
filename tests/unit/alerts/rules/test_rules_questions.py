"""Each alert answers five questions: what happens to which group, why, who, what it costs, what to do.

Alerts about groups are all checked where they are made: ``new_stage`` looks at every one that any test of
any rule gets.  Here are those that no stage makes, and the check itself.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from alerts.delivery.receivers.receiver import Notification
from alerts.delivery.receivers.webhook import webhook_body
from alerts.rules.engine.rule import SupervisorRule
from alerts.rules.monitor.cluster_unreachable import find_unreachable as cluster_unreachable
from alerts.rules.monitor.monitor_stalled import find_stalled as monitor_stalled
from alerts.rules.registry import ALL_RULES, DeclaredRule, nobody
from tests.unit.alerts.rules.conftest import unanswered
from tests.unit.made_alerts import an_alert

if TYPE_CHECKING:
    from tests.unit.alerts.rules.conftest import NewStage

T0 = 1_700_000_000_000
RULES = Path(__file__).parent


@pytest.mark.parametrize(
    ("change", "open_questions"),
    [
        ({}, []),
        ({"summary": "A member was lost."}, ["group"]),
        ({"summary": " "}, ["summary", "group"]),
        ({"cause": ""}, ["cause"]),
        ({"cost": "", "advice": ""}, ["cost", "advice"]),
        ({"advice": "Look at"}, ["advice"]),
    ],
)
def test_what_is_left_open_is_found(change: dict[str, str], open_questions: list[str]) -> None:
    """The check that all rules' tests make can fail."""
    assert unanswered(an_alert(**change)) == open_questions


def test_a_stage_looks_at_every_alert(new_stage: "NewStage") -> None:
    """Of which this test makes one, to be looked at when it is over."""
    stage = new_stage()
    stage.start(3)
    stage.time_out("m2")

    assert [unanswered(alert) for alert in stage.alerts] == [[]]


def test_alerts_of_the_supervisor_answer_all() -> None:
    """They come when nothing else does."""
    unreachable = cluster_unreachable("eu", T0, T0 + 60_000, "no route to host.")
    stalled = monitor_stalled("eu", T0, T0 + 60_000, "no batch has ended for 60 s.")

    assert (unanswered(unreachable), unanswered(stalled)) == ([], [])


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.name)
def test_who_is_answered_where_nobody_is_named(rule: DeclaredRule) -> None:
    """Never an empty line that looks like a fault of the receiver's."""
    alert = an_alert(name=rule.name, culprits=())
    body = webhook_body(Notification(id="a", revision=0, alerts=(alert,)), receiver="oncall")

    assert body["alerts"][0]["annotations"]["culprit"] == nobody(rule.name)


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.name)
def test_every_alert_is_made_by_a_test(rule: DeclaredRule) -> None:
    """So that no rule's words go unread."""
    quarantined = RULES.parents[1] / "streaming" / "workers" / "test_containment.py"
    files = [quarantined, *RULES.rglob("test_rules_*.py")]
    texts = [file.read_text() for file in files if file != Path(__file__)]
    supervised = isinstance(rule, SupervisorRule)

    assert supervised or any(f'"{rule.name}"' in text or f"import {rule.key}" in text for text in texts)
