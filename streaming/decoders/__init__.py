"""Turns Kafka's rows into observations, a whole column at once where possible.  Independent of Spark."""

from streaming.decoders.buffered_lines import BufferedLines, LineReader, RowBlock
from streaming.decoders.clock_copies import CLOCK_KEY
from streaming.decoders.cut_lines import CUT
from streaming.decoders.decoded import Decoded
from streaming.decoders.decoding_control import decode_control
from streaming.decoders.decoding_events import decode_lines, decode_rows
from streaming.decoders.decoding_offsets import decode_offsets
from streaming.decoders.packing import pack_cells, plain, unpack_cell
from streaming.decoders.quiet_texts import cut_words

__all__ = [
    "CLOCK_KEY",
    "CUT",
    "BufferedLines",
    "Decoded",
    "LineReader",
    "RowBlock",
    "cut_words",
    "decode_control",
    "decode_lines",
    "decode_offsets",
    "decode_rows",
    "pack_cells",
    "plain",
    "unpack_cell",
]
