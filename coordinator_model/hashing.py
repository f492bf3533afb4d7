"""Which offsets partition, and so which shard, a group belongs to."""

_INT_MIN = -(2**31)


def java_string_hash(text: str) -> int:
    """Return Java's ``String.hashCode``: 32-bit, over UTF-16 code units (so emoji count twice)."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


def shard_of(group: str, shard_count: int) -> int:
    """Return the partition of ``__consumer_offsets`` that holds ``group`` (Kafka: ``Utils.abs``)."""
    value = java_string_hash(group)
    return (0 if value == _INT_MIN else abs(value)) % shard_count
