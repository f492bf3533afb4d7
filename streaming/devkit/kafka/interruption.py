"""Lets SIGTERM and Ctrl-C end everything that was started, but never between a start and its recording.

A signal that raises inside ``Popen`` would leave a process that nobody records: seen when the demo was
stopped at the very moment at which it started the job.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class _Interruption:
    """Whether an interrupt must wait, and whether one does."""

    def __init__(self) -> None:
        self.holders = 0
        self.is_waiting = False

    def arrive(self, _signal: int, _frame: FrameType | None) -> None:
        if self.holders:
            self.is_waiting = True
        else:
            raise KeyboardInterrupt

    def release(self) -> None:
        self.holders -= 1
        if self.is_waiting and not self.holders:
            self.is_waiting = False
            raise KeyboardInterrupt


_INTERRUPTION = _Interruption()


@contextmanager
def interruptible() -> Iterator[None]:
    """Within, SIGTERM and SIGINT raise ``KeyboardInterrupt``; for the main thread only."""
    before = {number: signal.signal(number, _INTERRUPTION.arrive) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Within, an interrupt waits; it is raised at the end.  For moments, not for waiting."""
    _INTERRUPTION.holders += 1
    try:
        yield
    finally:
        _INTERRUPTION.release()
