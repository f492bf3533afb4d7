"""Host name lookups that can be abandoned, since a lookup that hangs cannot be cancelled."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

LOOKUPS_MAX = 4
"""How many may run: a delivery abandons its own after ``timeout``, the resolver ends it ~20 s later."""

P = ParamSpec("P")
T = TypeVar("T")


class Lookups(ThreadPoolExecutor):
    """Runs each call in a daemon thread of its own, so that neither ``close`` nor the process's exit waits.

    At exit Python joins the threads of a pool, even those that hang.  asyncio accepts only a
    ``ThreadPoolExecutor``, so this is one without a pool.
    """

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self._turns = threading.BoundedSemaphore(LOOKUPS_MAX)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Begin the call.

        Raises:
            OSError: too many lookups hang already.
        """
        if not self._turns.acquire(blocking=False):
            raise OSError(f"{LOOKUPS_MAX} lookups of the host name hang already")
        future: Future[T] = Future()

        def look_up() -> None:
            try:
                if future.set_running_or_notify_cancel():
                    future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)
            finally:
                self._turns.release()

        threading.Thread(target=look_up, name="lookup", daemon=True).start()
        return future
