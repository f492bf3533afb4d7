"""Who owns a group: the first entry whose patterns match.  Owners are a label, and routes can match them."""

import re
from collections.abc import Callable, Sequence

import msgspec

from alerts.alert import Alert

OwnerOf = Callable[[Alert], str]
"""Returns who owns an alert's group; "" if nobody is named."""


class Owned(msgspec.Struct, frozen=True, kw_only=True):
    """One entry; patterns are for whole names, and an empty tuple of clusters means all."""

    owner: str
    groups: tuple[str, ...]
    clusters: tuple[str, ...] = ()


class Owners:
    """All entries, in order."""

    def __init__(self, owned: Sequence[Owned] = ()) -> None:
        """Take them."""
        self._owned = [(one, re.compile("|".join(f"(?:{p})" for p in one.groups))) for one in owned]

    def of(self, alert: Alert) -> str:
        """Return the owner of the alert's group; "" for alerts about a whole cluster."""
        return self.of_group(alert.cluster, alert.group)

    def of_group(self, cluster: str, group: str) -> str:
        """Return the owner of a group; "" if nobody is named."""
        for one, pattern in self._owned if group else ():
            if (not one.clusters or cluster in one.clusters) and pattern.fullmatch(group):
                return one.owner
        return ""


def nobody_owns(_alert: Alert) -> str:
    """Return "": no owners are configured."""
    return ""
