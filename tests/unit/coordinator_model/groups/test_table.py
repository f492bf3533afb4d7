"""Each observation about groups has one handler for classic groups and one for newer ones."""

import re

from coordinator_model import observations as on
from coordinator_model.groups.table import EFFECTS

ANSWERED = {on.GroupDescribed, on.EndOffsetsReported}
"""What brokers answered about a group is compared and taken in by ``shard/timeline.py``."""


def test_what_concerns_groups_has_a_handler() -> None:
    """No observation about groups is read, ordered and then dropped."""
    of_groups = on.types_that(
        lambda one: one.concerns & (on.Concerns.GROUP | on.Concerns.GROUPS) and not one.is_taken_apart
    )
    assert set(EFFECTS) == of_groups - ANSWERED


def test_every_line_has_a_handler() -> None:
    """An observation is about classic groups, modern groups, or both."""
    assert [one for one, effect in EFFECTS.items() if effect == (None, None)] == []


def test_handlers_are_called_like_what_they_handle() -> None:
    """A handler stands in the line of its own observation, and is found by its name."""
    shared = {"_noticed_only", "ignored", "line_fenced", "modern_write"}
    wrong = {
        (one.__name__, handler.__name__)
        for one, effect in EFFECTS.items()
        for handler in effect
        if handler is not None
        if handler.__name__ not in {*shared, re.sub(r"(?<!^)(?=[A-Z])", "_", one.__name__).lower()}
    }
    assert wrong == set()
