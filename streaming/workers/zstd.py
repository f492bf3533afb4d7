"""zstd for saved shards: a quarter of the standard library's CPU time, and smaller.  pyarrow ships it."""

import pyarrow as pa


class Zstd:
    """Compresses parts of a saved shard."""

    name = "zstd"

    def __init__(self) -> None:
        self._codec = pa.Codec("zstd", 1)

    def pack(self, raw: bytes) -> bytes:
        """Return ``raw`` compressed."""
        packed: bytes = self._codec.compress(raw, asbytes=True)
        return packed

    def unpack(self, packed: bytes, size: int) -> bytes:
        """Return the ``size`` bytes that were packed.

        Raises:
            ValueError: these bytes were never packed like this.
        """
        try:
            raw: bytes = self._codec.decompress(packed, size, asbytes=True)
        except OSError as error:
            raise ValueError(str(error)) from error
        return raw


ZSTD = Zstd()
