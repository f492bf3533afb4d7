"""Turns Kafka's rows into observations, a whole column at once where possible.  Independent of Spark."""

from streaming.decoders.decoded import Decoded
from streaming.decoders.decoding_control import decode_control
from streaming.decoders.decoding_events import CLOCK_KEY, decode_lines, decode_rows
from streaming.decoders.decoding_offsets import decode_offsets
from streaming.decoders.held_lines import LineReader, Lines, Piece
from streaming.decoders.packing import pack_cells, plain, unpack_cell

__all__ = [
    "CLOCK_KEY",
    "Decoded",
    "LineReader",
    "Lines",
    "Piece",
    "decode_control",
    "decode_lines",
    "decode_offsets",
    "decode_rows",
    "pack_cells",
    "plain",
    "unpack_cell",
]
