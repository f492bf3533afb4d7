"""The state stage's rows between the JVM and a worker: as Spark's own code carries them, without pandas."""

import io
import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark import worker
from pyspark.sql.pandas.serializers import ApplyInPandasWithStateSerializer
from pyspark.sql.types import BinaryType, IntegerType, LongType, Row, StringType, StructType

from coordinator_model.observations.base import Source
from coordinator_model.observations.control import Clock
from coordinator_model.observations.seen import pack
from streaming.workers import state_stream
from streaming.workers.shard_state import OUTPUT_SCHEMA, STATE_SCHEMA, ShardStage
from tests.unit.made_seen import seen

_SAVED = StructType().add("version", IntegerType()).add("due_ms", LongType()).add("blob", BinaryType())
_OUTPUT = StructType().add("kind", StringType()).add("key", StringType()).add("value", BinaryType())
_INFO = pa.struct(
    [
        ("properties", pa.string()),
        ("keyRowAsUnsafe", pa.binary()),
        ("object", pa.binary()),
        ("startOffset", pa.int32()),
        ("numRows", pa.int32()),
        ("isLastChunk", pa.bool_()),
    ]
)


def _ddl(schema: StructType) -> str:
    return ", ".join(f"{one.name} {one.dataType.simpleString()}".replace("bigint", "long") for one in schema)


def _cell(at_ms: int, *, ask: bool = False) -> bytes:
    clock = Clock(sequence=at_ms, end_offset=0, position=0, ask=ask)
    return pack([seen(at_ms, clock, Source.CONTROL)])


def _info(key: bytes, saved: Row | None, start: int, rows: int, *, last: bool = True) -> dict[str, Any]:
    properties = {
        "batchProcessingTimeMs": 7,
        "eventTimeWatermarkMs": -1,
        "timeoutConf": "NoTimeout",
        "hasTimedOut": False,
        "watermarkPresent": False,
        "defined": saved is not None,
        "updated": False,
        "removed": False,
        "timeoutTimestamp": -1,
    }
    return {
        "properties": json.dumps(properties),
        "keyRowAsUnsafe": key,
        "object": None if saved is None else pickle.dumps(saved),
        "startOffset": start,
        "numRows": rows,
        "isLastChunk": last,
    }


def _from_the_jvm(shards: list[int], cells: list[bytes], told: list[dict[str, Any]]) -> bytes:
    infos = [*told, *[None] * (len(cells) - len(told))]
    columns = [
        pa.array(["c"] * len(cells)),
        pa.array(shards, pa.int32()),
        pa.array(cells, pa.binary()),
        pa.array(infos, _INFO),
    ]
    batch = pa.RecordBatch.from_arrays(columns, ["cluster", "shard", "payload", "state"])
    sink = io.BytesIO()
    with pa.RecordBatchStreamWriter(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


_Serializer = Callable[..., ApplyInPandasWithStateSerializer]
_Wrap = Callable[..., Callable[..., Any]]
_SPARKS = (ApplyInPandasWithStateSerializer, worker.wrap_grouped_map_pandas_udf_with_state)
_OURS = (state_stream.serializer, state_stream.wrapped)


def _carried(way: tuple[_Serializer, _Wrap], received: bytes, at_once: int = 16_000) -> list[pa.RecordBatch]:
    """Return what goes back to the JVM; between both ends stands what ``pyspark.worker.read_udfs`` does."""
    make, wrap = way
    serializer = make(
        timezone="UTC",
        safecheck=False,
        assign_cols_by_name=True,
        prefer_int_ext_dtype=False,
        state_object_schema=_SAVED,
        arrow_max_records_per_batch=at_once,
        prefers_large_var_types=False,
        int_to_decimal_coercion_enabled=False,
    )
    call = wrap(ShardStage(cluster="c", shard_count=2), _OUTPUT, None)

    def results() -> Iterator[Any]:
        for data, state in serializer.load_stream(io.BytesIO(received)):
            chunks = (chunk for chunk, _ in data)
            first = next(chunks)
            rest = ([one[0], one[1], one[2]] for one in (first, *chunks))
            yield call([first[0], first[1]], rest, state)

    sink = io.BytesIO()
    serializer.dump_stream(results(), sink)
    sent = sink.getvalue()
    assert int.from_bytes(sent[:4], "big", signed=True) == -6  # where Arrow begins
    return list(pa.ipc.open_stream(io.BytesIO(sent[4:])))


def _saved_before() -> Row:
    """Return shard 0 as an earlier batch left it; what is due then is due again at any clock."""
    first = _from_the_jvm([0], [_cell(1_000)], [_info(b"key-0", None, 0, 1)])
    [batch] = _carried(_SPARKS, first)
    _, _, blob = pickle.loads(batch.column(2).field(2)[0].as_py())  # noqa: S301 - made above
    return Row(version=1, due_ms=1_500, blob=blob)


def test_it_sends_what_sparks_own_code_sends() -> None:
    """A new shard, one in two chunks with news, and padding: the same batch, byte by byte."""
    received = _from_the_jvm(
        [0, 0, 1],
        [_cell(2_000), _cell(3_000, ask=True), _cell(2_000)],
        [
            _info(b"key-0", _saved_before(), 0, 1, last=False),
            _info(b"key-0", _saved_before(), 1, 1),
            _info(b"key-1", None, 2, 1),
        ],
    )
    assert _carried(_OURS, received) == _carried(_SPARKS, received)


def test_a_full_batch_goes_before_the_states_of_its_last_shard() -> None:
    """More rows than one batch may have are sent in several, cut where Spark's own code cuts them."""
    received = _from_the_jvm(
        [0, 1],
        [_cell(2_000, ask=True)] * 2,
        [_info(b"key-0", None, 0, 1), _info(b"key-1", None, 1, 1)],
    )
    ours = _carried(_OURS, received, at_once=1)
    assert len(ours) > 1
    assert ours == _carried(_SPARKS, received, at_once=1)


def test_a_shard_that_slept_sends_no_bytes_back() -> None:
    """What need not be written is not carried; its flags say so."""
    saved = Row(version=1, due_ms=2**62, blob=_saved_before()[2])
    [batch] = _carried(_OURS, _from_the_jvm([0], [_cell(2_000)], [_info(b"key-0", saved, 0, 1)]))
    [state] = batch.column(2).to_pylist()
    flags = json.loads(state["properties"])
    assert (state["object"], flags["defined"], flags["updated"]) == (None, True, False)


def test_it_carries_the_saved_rows_of_our_schema_only() -> None:
    """Another query's rows go Spark's own way."""
    assert state_stream.is_ours(_SAVED)
    assert not state_stream.is_ours(StructType().add("count", LongType()))
    assert (_ddl(_SAVED), _ddl(_OUTPUT)) == (STATE_SCHEMA, OUTPUT_SCHEMA)


@pytest.mark.parametrize("version", ["4.2.1", "5.0.0"])
def test_another_spark_keeps_its_own_way(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written for one version is not used with another."""
    before = worker.ApplyInPandasWithStateSerializer
    monkeypatch.setattr(pyspark, "__version__", version)
    assert not state_stream.install()
    assert worker.ApplyInPandasWithStateSerializer is before


def test_it_is_written_for_the_spark_that_is_locked() -> None:
    """An upgrade of Spark must look at the exchange again."""
    assert pyspark.__version__ == state_stream.SPARK_VERSION
