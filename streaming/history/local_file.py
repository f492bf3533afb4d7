"""A SQLite file that one process has for itself: opened, or moved aside and begun anew if it is damaged.

One connection, of whoever holds the lock.  Nothing here is needed to judge a group, so that a file which
another process has is left alone.
"""

import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_log = logging.getLogger("groupwatch.history")


class FileTroubleError(Exception):
    """The file cannot be used now; the text is a sentence."""


class LocalFile:
    """One open file."""

    version = 0
    """Of its tables; a file of another version is moved aside."""
    tables = ""
    """The statements that make them."""

    def __init__(self, path: Path) -> None:
        """Open the file, or begin it.

        Raises:
            FileTroubleError: another process has it, or the disk does not take it.
        """
        self.path = path
        self.aside = ""
        """The sentence that another file was moved aside for this one; "": none was."""
        self._lock = threading.RLock()
        self._file = self._opened()

    def _opened(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600)  # the log beside it gets the same mode
            return self._begun()
        except sqlite3.OperationalError as error:
            raise FileTroubleError(_sentence(self.path, error)) from error
        except sqlite3.DatabaseError as error:
            self._aside(str(error))
        except OSError as error:
            raise FileTroubleError(_sentence(self.path, error)) from error
        try:
            return self._begun()
        except sqlite3.Error as error:
            raise FileTroubleError(_sentence(self.path, error)) from error

    def _begun(self) -> sqlite3.Connection:
        file = sqlite3.connect(self.path, timeout=0.1, isolation_level=None, check_same_thread=False)
        try:
            # Only this process reads and writes it, so no shared memory beside it is needed.
            file.execute("PRAGMA locking_mode=EXCLUSIVE")
            file.execute("PRAGMA journal_mode=WAL")
            file.execute("PRAGMA synchronous=OFF")
            file.execute("PRAGMA cache_size=-8000")
            version = file.execute("PRAGMA user_version").fetchone()[0]
            has_tables = file.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] > 0
            if version == 0 and not has_tables:
                file.executescript(f"BEGIN EXCLUSIVE;{self.tables}PRAGMA user_version={self.version};COMMIT;")
            elif version != self.version:
                raise sqlite3.DatabaseError(f"its version is {version}, not {self.version}")
            else:
                file.executescript("BEGIN EXCLUSIVE;COMMIT;")
        except BaseException:
            file.close()
            raise
        return file

    def _aside(self, why: str) -> None:
        aside = self.path.with_name(f"{self.path.name}.damaged")
        self.aside = (
            f"The history in {self.path} could not be read ({why}): it was moved to {aside} and begun anew. "
            "Rebalances and alerts of 7 days come back from the topics; lag, members, ClusterUnreachable and "
            "MonitorStalled, which stand in none, do not."
        )
        _log.warning("%s", self.aside)
        for ending in ("-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
        os.replace(self.path, aside)

    def begin_anew(self, why: str) -> None:
        """Move the file aside and begin another.

        Raises:
            FileTroubleError: there can be none.
        """
        with self._lock:
            self.close()
            try:
                self._aside(why)
            except OSError as error:
                raise FileTroubleError(_sentence(self.path, error)) from error
            self._file = self._opened()

    def close(self) -> None:
        """Close the file."""
        with self._lock, suppress(sqlite3.Error):
            self._file.close()

    @contextmanager
    def writing(self) -> Iterator["LocalFile"]:
        """Write everything inside in one transaction, or nothing.

        Raises:
            sqlite3.Error: it could not be written.
        """
        with self._lock:
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield self
                self._file.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._file.execute("ROLLBACK")
                raise


def _sentence(path: Path, error: Exception) -> str:
    """Return why a file cannot be used, as a sentence."""
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return f"another process keeps its history in {path}"
    why = getattr(error, "strerror", None) or str(error)
    return f"the history in {path} cannot be written: {why}"
