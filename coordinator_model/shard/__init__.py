"""Runs many groups in time: order of events, deadlines, live sources, saved bytes."""

from coordinator_model.shard.cluster import (
    REQUEST_LOGGER,
    ClusterState,
    FailoverRebalance,
    LostRecords,
    Quarantine,
)
from coordinator_model.shard.judging import (
    ASKED_AGAIN_MS,
    Divergence,
    Judge,
    Judgement,
    LiveSources,
    Outputs,
)
from coordinator_model.shard.live_sources import PROOF_MS_MAX
from coordinator_model.shard.report import GroupReport
from coordinator_model.shard.settings import SettingsError, check_shard_settings, read_settings
from coordinator_model.shard.shard import Shard
from coordinator_model.shard.snapshot import DamagedError, SnapshotError
from coordinator_model.shard.timeline import DEAD_KEPT_MS

__all__ = [
    "ASKED_AGAIN_MS",
    "DEAD_KEPT_MS",
    "PROOF_MS_MAX",
    "REQUEST_LOGGER",
    "ClusterState",
    "DamagedError",
    "Divergence",
    "FailoverRebalance",
    "GroupReport",
    "Judge",
    "Judgement",
    "LiveSources",
    "LostRecords",
    "Outputs",
    "Quarantine",
    "SettingsError",
    "Shard",
    "SnapshotError",
    "check_shard_settings",
    "read_settings",
]
