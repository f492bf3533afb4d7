"""Everything that runs on executors: the decode stage and the state stage.  Independent of the driver."""

from streaming.workers.blocks import BLOCK
from streaming.workers.decode_stage import CONTROL, EVENTS, OFFSETS, SCHEMA, DecodeStage
from streaming.workers.shard_state import OUTPUT_SCHEMA, STATE_SCHEMA, ShardStage
from streaming.workers.zstd import ZSTD

__all__ = [
    "BLOCK",
    "CONTROL",
    "EVENTS",
    "OFFSETS",
    "OUTPUT_SCHEMA",
    "SCHEMA",
    "STATE_SCHEMA",
    "ZSTD",
    "DecodeStage",
    "ShardStage",
]
