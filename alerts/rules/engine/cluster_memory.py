"""The memory of the rules about the whole cluster."""

import msgspec

from alerts.alert import Alert
from alerts.rules.engine.lifecycle import OpenAlert


class Watch(msgspec.Struct, array_like=True, kw_only=True):
    """How regularly one broker's request log has lines."""

    heard_ms: int
    regular_since_ms: int


class ClusterMemory(msgspec.Struct, array_like=True, kw_only=True):
    """The memory of the cluster-wide rules; new fields go to the end, with a default."""

    open: dict[str, OpenAlert] = {}
    used: dict[str, int] = {}
    surplus: list[Alert] = []
    watches: dict[int, Watch] = {}
    ends: dict[str, list[int]] = {}
    """As in ``GroupMemory``."""
