"""Checksums of names, so that the rules can remember many members in little space."""

import zlib


def checksum(name: str) -> int:
    """Return a name's CRC-32; 0 for "", which stands for unknown.

    Python's ``hash()`` differs between processes, and these values are saved.
    """
    return zlib.crc32(name.encode("utf-8", "surrogatepass"))
