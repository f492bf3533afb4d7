"""Names as small numbers, for what is remembered of many members."""

import zlib


def checksum(name: str) -> int:
    """Return a name's CRC-32; 0 for "", which stands for unknown.

    Not ``hash()``: that differs between processes, and these are saved.
    """
    return zlib.crc32(name.encode("utf-8", "surrogatepass"))
