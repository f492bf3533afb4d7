"""Carries the state stage's rows between Spark's JVM and a worker as Arrow columns, without pandas.

Spark makes a dozen small pandas objects for each key of ``applyInPandasWithState``, twice: of 2 ms that a
shard with a few commits took, they were a quarter.  The bytes on the wire are the same, and the stage is the
same function: only the code of ``pyspark.worker`` between them is ours.  It holds for the one version of
Spark that the lock names; any other version, and every other query, goes Spark's own way.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, repeat
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyspark
from pyspark import worker
from pyspark.sql.pandas.serializers import ApplyInPandasWithStateSerializer, ArrowStreamSerializer
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructType

from streaming.workers.saved_state import SavedState

SPARK_VERSION = "4.2.0"
"""The version whose exchange with its workers this module speaks."""

_Row = tuple[str, str, bytes]
_Chunk = tuple[list[pa.Array], SavedState]

_COUNT = pa.schema([("dataCount", pa.int32()), ("stateCount", pa.int32())])
_OUTPUT = pa.schema([("kind", pa.string()), ("key", pa.string()), ("value", pa.binary())])
_SAVED = StructType().add("version", IntegerType()).add("due_ms", LongType()).add("blob", BinaryType())
"""``shard_state.STATE_SCHEMA``."""
_STATE = pa.schema(
    [
        ("properties", pa.string()),
        ("keyRowAsUnsafe", pa.binary()),
        ("object", pa.binary()),
        ("oldTimeoutTimestamp", pa.int64()),
    ]
)


class StateStream(ApplyInPandasWithStateSerializer):  # type: ignore[misc]  # pyspark has no types here
    """Spark's serializer of the state stage, for our stage alone."""

    def load_stream(self, stream: Any) -> Iterator[tuple[Iterator[_Chunk], SavedState]]:
        """Yield each key's chunks of columns, and what is saved of it."""
        chunks = _chunks(ArrowStreamSerializer.load_stream(self, stream))
        for state, mine in groupby(chunks, key=itemgetter(1)):
            yield mine, state

    def dump_stream(self, iterator: Iterable[Any], stream: Any) -> None:
        """Write what the stage yielded for each key, and what is to be saved."""
        batches = self._write_stream_start(self._batches(iterator), stream)
        ArrowStreamSerializer.dump_stream(self, batches, stream)

    def _batches(self, results: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        rows: list[_Row] = []
        states: list[SavedState] = []
        for (((outputs, state), _),) in results:
            for some in outputs:
                rows += some
                if len(rows) > self.arrow_max_records_per_batch:
                    yield batch_of(rows, states)
                    rows, states = [], []
            # Only now is the state what it will be: the stage works while its rows are taken.
            states.append(state)
        if rows or states:
            yield batch_of(rows, states)


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[_Chunk]:
    """Yield the data of each key, in one chunk or several, with the key's state."""
    state: SavedState | None = None
    for batch in batches:
        *columns, told = batch.columns
        for one in told:
            known = one.as_py()
            if not known:  # the column of states is as long as those of the data
                break
            if state is None:
                state = SavedState(
                    key_row=known["keyRowAsUnsafe"], properties=known["properties"], packed=known["object"]
                )
            yield [column.slice(known["startOffset"], known["numRows"]) for column in columns], state
            if known["isLastChunk"]:
                state = None


def batch_of(rows: list[_Row], states: list[SavedState]) -> pa.RecordBatch:
    """Return output rows and states side by side, all columns as long as the longest, as the JVM wants."""
    size = max(1, len(rows), len(states))
    kinds, keys, values = zip(*rows, strict=True) if rows else ((), (), ())
    count: list[Sequence[Any]] = [[len(rows)] * size, [len(states)] * size]
    state: list[Sequence[Any]] = [
        [one.properties() for one in states],
        [one.key_row for one in states],
        [one.packed() for one in states],
        [one.timeout_ms for one in states],
    ]
    parts = ((_COUNT, count), (_OUTPUT, [kinds, keys, values]), (_STATE, state))
    structs = [_struct(schema, columns, size) for schema, columns in parts]
    return pa.RecordBatch.from_arrays(structs, ["_0", "_1", "_2"])


def _struct(schema: pa.Schema, columns: Iterable[Sequence[Any]], size: int) -> pa.StructArray:
    filled = [[*column, *repeat(None, size - len(column))] for column in columns]
    arrays = [pa.array(column, field.type) for column, field in zip(filled, schema, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=list(schema))


def is_ours(state_schema: object) -> bool:
    """Return whether a query saves rows as our state stage does."""
    return isinstance(state_schema, StructType) and state_schema == _SAVED


def serializer(**options: Any) -> ApplyInPandasWithStateSerializer:
    """Return the serializer of a query: ours for ours."""
    kind = StateStream if is_ours(options.get("state_object_schema")) else ApplyInPandasWithStateSerializer
    return kind(**options)


def wrapped(stage: Callable[..., Iterator[Any]], return_type: Any, runner_conf: Any) -> Callable[..., Any]:
    """Return the function that ``pyspark.worker`` calls for each key; of another query Spark's own."""
    plain = _SPARKS_WRAP(stage, return_type, runner_conf)

    def call(key: list[Any], chunks: Iterator[list[Any]], state: Any) -> Any:
        if not isinstance(state, SavedState):
            return plain(key, chunks, state)
        of_key = tuple(column[0].as_py() for column in key)
        frames = ({"payload": columns[-1].to_pylist()} for columns in chunks)
        return [((stage(of_key, frames, state), state), return_type)]

    return call


_SPARKS_WRAP = worker.wrap_grouped_map_pandas_udf_with_state


def install() -> bool:
    """Let this process and its forks carry our rows so; False for a version of Spark that may differ."""
    if pyspark.__version__ != SPARK_VERSION:
        return False
    worker.ApplyInPandasWithStateSerializer = serializer
    worker.wrap_grouped_map_pandas_udf_with_state = wrapped
    return True
