"""Writes Kafka's bytes by hand, so that the decoders are not judged by their own tables."""

import struct


def text(value: str | None) -> bytes:
    """Return a non-flexible string."""
    if value is None:
        return struct.pack(">h", -1)
    raw = value.encode()
    return struct.pack(">h", len(raw)) + raw


def blob(value: bytes) -> bytes:
    """Return non-flexible bytes."""
    return struct.pack(">i", len(value)) + value


def uvarint(value: int) -> bytes:
    """Return an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def compact_text(value: str | None) -> bytes:
    """Return a flexible string."""
    return b"\0" if value is None else compact_blob(value.encode())


def compact_blob(value: bytes) -> bytes:
    """Return flexible bytes."""
    return uvarint(len(value) + 1) + value


def tags(*fields: tuple[int, bytes]) -> bytes:
    """Return a tagged section."""
    return uvarint(len(fields)) + b"".join(uvarint(tag) + uvarint(len(raw)) + raw for tag, raw in fields)


def commit_key(group: str, topic: str, partition: int, record_type: int = 1) -> bytes:
    """Return the key of an offset commit."""
    return struct.pack(">h", record_type) + text(group) + text(topic) + struct.pack(">i", partition)


def commit_value(
    offset: int,
    at_ms: int,
    *,
    version: int = 4,
    metadata: str = "",
    topic_id: bytes | None = b"\x01" * 16,
    extra_tags: tuple[tuple[int, bytes], ...] = (),
) -> bytes:
    """Return the value of an offset commit (type 1; its version 0 is type 0's as well)."""
    head = struct.pack(">hq", version, offset)
    if version >= 3:
        head += struct.pack(">i", 7)
    when = struct.pack(">q", at_ms)
    if version < 4:
        return head + text(metadata) + when + (struct.pack(">q", 99) if version == 1 else b"")
    known = () if topic_id is None else ((0, topic_id),)
    return head + compact_text(metadata) + when + tags(*known, *extra_tags)


def group_key(group: str) -> bytes:
    """Return the key of a classic group's record."""
    return struct.pack(">h", 2) + text(group)


def subscription(*topics: str, version: int = 0) -> bytes:
    """Return a ConsumerProtocol subscription of these topics, without what newer versions add."""
    return struct.pack(">hi", version, len(topics)) + b"".join(map(text, topics)) + struct.pack(">i", -1)


def assignment(assigned: dict[str, list[int]], version: int = 0) -> bytes:
    """Return a ConsumerProtocol assignment."""
    parts = (
        text(topic) + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
        for topic, partitions in assigned.items()
    )
    return struct.pack(">hi", version, len(assigned)) + b"".join(parts) + struct.pack(">i", -1)


def group_value(
    generation: int,
    *,
    version: int = 3,
    protocol_type: str = "consumer",
    subscribed: bytes = b"",
    assigned: bytes = b"",
    members: int = 1,
) -> bytes:
    """Return the value of a classic group's record; member 1 is static where versions know that."""
    write_text, write_blob, end = (compact_text, compact_blob, tags()) if version >= 4 else (text, blob, b"")
    out = struct.pack(">h", version) + write_text(protocol_type) + struct.pack(">i", generation)
    out += write_text("range" if members else None) + write_text("m1" if members else None)
    if version >= 2:
        out += struct.pack(">q", 1234)
    out += uvarint(members + 1) if version >= 4 else struct.pack(">i", members)
    for number in range(1, members + 1):
        out += write_text(f"m{number}")
        if version >= 3:
            out += write_text("static" if number == 1 else None)
        out += write_text("client") + write_text("/10.0.0.1")
        if version >= 1:
            out += struct.pack(">i", 60_000)
        out += struct.pack(">i", 10_000) + write_blob(subscribed) + write_blob(assigned) + end
    return out + end
