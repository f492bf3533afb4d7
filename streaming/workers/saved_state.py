"""A shard's saved row as Spark hands it to the state stage, without pandas (``state_stream.py``)."""

import json
import pickle
from functools import lru_cache
from typing import Any

StateRow = tuple[int, int, bytes]
"""The columns of ``shard_state.STATE_SCHEMA``."""

_PROTOCOL = pickle.HIGHEST_PROTOCOL


class SavedState:
    """As much of Spark's ``GroupState`` as the state stage uses; it is never removed and never times out."""

    def __init__(self, *, key_row: bytes, properties: str, packed: bytes | None) -> None:
        """Take what the JVM tells of a key.

        Args:
            key_row: the key, for the JVM alone.
            properties: the flags of Spark's state, as JSON.
            packed: the saved row, pickled; None: there is none.
        """
        self.key_row = key_row
        self._properties = properties
        self._packed = packed
        self._updated: StateRow | None = None

    @property
    def exists(self) -> bool:
        """Whether anything is saved."""
        return self._updated is not None or bool(_flags(self._properties)["defined"])

    @property
    def get(self) -> tuple[Any, ...]:
        """The saved row."""
        if self._updated is not None:
            return self._updated
        # Bytes of our own query's JVM, as Spark's own code takes them.
        return tuple(pickle.loads(self._packed)) if self._packed else ()  # noqa: S301

    def update(self, row: StateRow) -> None:
        """Save this row."""
        self._updated, self._packed = row, None

    @property
    def timeout_ms(self) -> int:
        """The timeout that the key had; it goes back as it came."""
        return int(_flags(self._properties)["timeoutTimestamp"])

    def properties(self) -> bytes:
        """Return the flags that tell the JVM whether to write the row."""
        return _told(self._properties, is_updated=self._updated is not None)

    def packed(self) -> bytes | None:
        """Return the row for the JVM; None if it need not be written: the JVM keeps what it has."""
        return None if self._updated is None else pickle.dumps(self._updated, _PROTOCOL)


@lru_cache(maxsize=16)
def _flags(properties: str) -> dict[str, Any]:
    """All keys of a batch have the same few properties."""
    found: dict[str, Any] = json.loads(properties)
    return found


@lru_cache(maxsize=32)
def _told(properties: str, *, is_updated: bool) -> bytes:
    changed = {"defined": True, "updated": True, "removed": False} if is_updated else {}
    return json.dumps({"optionalValue": None, **_flags(properties), **changed}).encode()
