"""Runs the model over captured files, without Spark or Kafka."""

from streaming.replay.described_records import describe_lines
from streaming.replay.files import Skipped
from streaming.replay.output import print_replay
from streaming.replay.run import CLUSTER, Passed, replay

__all__ = [
    "CLUSTER",
    "Passed",
    "Skipped",
    "describe_lines",
    "print_replay",
    "replay",
]
