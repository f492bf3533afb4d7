"""Keeps memory that a Python worker has used, so that the next batch need not ask the system for it again.

A backlog needs hundreds of megabytes once, so what is free goes back every two minutes all the same; a live
job's next batch then asks for its tens of megabytes again.

Every batch needs tens of megabytes and frees them.  Both allocators return such blocks at once, and the
kernel clears each page again: on a virtual machine that took as long as all the decoding (60,000 page faults
of 15 µs for 175 MB; with this module, 3,000).
"""

import ctypes
import time
from functools import cache

import pyarrow as pa

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
"""Parameters of glibc's ``mallopt``."""
_KEPT_BYTES = 512 * 2**20
"""Free memory above this is returned to the system."""
_GROWTH_BYTES = 16 * 2**20


_RETURN_EVERY_S = 120.0
_STAYS_BYTES = 16 * 2**20
_returned_s = time.monotonic()


def keep_memory() -> bool:
    """Keep memory from now on in this process; return whether its C library can.

    Each call of a stage begins with it.
    """
    global _returned_s  # noqa: PLW0603 - one for each process, as its memory is
    can = _keep_from_now_on()
    now_s = time.monotonic()
    if can and now_s - _returned_s > _RETURN_EVERY_S:
        _returned_s = now_s
        ctypes.CDLL(None).malloc_trim(_STAYS_BYTES)
    return can


@cache
def _keep_from_now_on() -> bool:
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    kept = (
        mallopt(_M_MMAP_MAX, 0),
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES),
        mallopt(_M_TOP_PAD, _GROWTH_BYTES),
    )
    pa.set_memory_pool(pa.system_memory_pool())
    return all(kept)
