"""Keeps memory that a Python worker has used, so that the next batch need not ask the system for it again.

Every batch needs tens of megabytes and frees them.  Both allocators return such blocks at once, and the
kernel clears each page again: on a virtual machine that took as long as all the decoding (60,000 page faults
of 15 µs for 175 MB; with this module, 3,000).
"""

import ctypes
from functools import cache

import pyarrow as pa

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
"""Parameters of glibc's ``mallopt``."""
_KEPT_BYTES = 512 * 2**20
"""Free memory above this is returned to the system."""
_GROWTH_BYTES = 16 * 2**20


@cache
def keep_memory() -> bool:
    """Keep memory from now on in this process; return whether its C library can."""
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
