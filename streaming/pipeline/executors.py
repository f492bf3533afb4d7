"""The executors of a Spark cluster: the cores that were asked for, those that are there, the tasks that fit.

In local mode the driver is the only executor, and nothing here waits.
"""

import logging
import math
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyspark.sql import SparkSession

_WAIT_S = 30.0
_STEADY_S = 3.0
"""Where nobody said how many cores to await: as long as no further core registers."""
_LOOK_S = 0.1
_LOCAL_STATE_TASKS_MAX = 8
_REMOTE_STATE_TASKS_MAX = 16
"""There are 51 shards; with more tasks than this many are empty, and each costs 60 to 100 ms."""

_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*\d+\s*,\s*(?P<cores>\d+)")

_log = logging.getLogger(__name__)


class Size(NamedTuple):
    """Executors, and the cores of all of them together."""

    executors: int
    cores: int


def is_remote(master: str) -> bool:
    """Say whether executors run in other processes, perhaps on other machines; ``local-cluster`` is so."""
    return master != "local" and not master.startswith("local[")


def local_cores(master: str) -> int:
    """Return the cores of ``local[…]``."""
    wanted = master.removeprefix("local").strip("[]").split(",")[0]
    return int(wanted) if wanted.isdigit() else (os.cpu_count() or 2)


def state_tasks(cores: int, *, remote: bool) -> int:
    """Return the number of tasks that share the shards: no more than cores, as an empty one costs as well."""
    return max(1, min(_REMOTE_STATE_TASKS_MAX if remote else _LOCAL_STATE_TASKS_MAX, cores))


def declared(settings: Mapping[str, str]) -> Size | None:
    """Return what was asked of the cluster; None if that is whatever the cluster has.

    A standalone master goes by ``spark.cores.max``, the others by executors and their cores.
    """
    each = cores_of_each(settings)
    total = _number(settings, "spark.cores.max")
    if settings["spark.master"].startswith("spark://"):
        # Without spark.executor.cores an executor takes all cores of its worker: at least one executor.
        return Size(math.ceil(total / each) if each else 1, total) if total else None
    count = _number(settings, "spark.executor.instances")
    return Size(count, count * each) if count else None


def cores_of_each(settings: Mapping[str, str]) -> int:
    """Return the cores of one executor; 0 if it takes all that its worker has (a standalone master)."""
    master = settings["spark.master"]
    if one_machine := _LOCAL_CLUSTER.match(master):
        return int(one_machine["cores"])
    return _number(settings, "spark.executor.cores") or (0 if master.startswith("spark://") else 1)


def _number(settings: Mapping[str, str], name: str) -> int:
    text = settings.get(name, "")
    return int(text) if text.isdigit() else 0


def cores_for_tasks(spark: SparkSession) -> int:
    """Wait for the executors that were asked for; return the cores that tasks may count on.

    Each query calls it as it starts: the count at the session's start may be that of the first executor
    alone, and executors may have gone since.
    """
    settings = dict(spark.sparkContext.getConf().getAll())
    if not is_remote(settings["spark.master"]):
        return max(1, int(spark.sparkContext.defaultParallelism))
    wanted = declared(settings)
    found = await_executors(lambda: _registered(spark), wanted)
    # Executors that are late will come: tasks for them wait their turn until then.
    return max(1, found.cores, wanted.cores if wanted else 0)


def _registered(spark: SparkSession) -> Size:
    context = spark.sparkContext
    executors = int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1  # the driver is one of them
    return Size(executors, int(context.defaultParallelism))


def await_executors(
    look: Callable[[], Size],
    wanted: Size | None,
    *,
    wait_s: float = _WAIT_S,
    clock: Callable[[], float] = time.monotonic,
    rest: Callable[[float], None] = time.sleep,
) -> Size:
    """Wait until what was asked for has registered, and return what has; at most ``wait_s``.

    Args:
        look: returns what is registered now.
        wanted: what was asked for; None: until nothing has been added for some seconds.
        wait_s: the bound.
        clock: seconds, monotonic.
        rest: sleeps.
    """
    began = changed = clock()
    found = look()
    while True:
        now = clock()
        is_steady = found.executors > 0 and now - changed >= _STEADY_S
        is_enough = is_steady if wanted is None else _has(found, wanted)
        if is_enough or now - began >= wait_s:
            break
        rest(_LOOK_S)
        was, found = found, look()
        changed = changed if found == was else clock()
    asked = "as many as there are" if wanted is None else f"{wanted.executors} with {wanted.cores} cores"
    level = logging.INFO if is_enough else logging.WARNING
    _log.log(
        level,
        "executors: %d with %d cores after %.1f s (asked for: %s)",
        found.executors,
        found.cores if found.executors else 0,
        now - began,
        asked,
    )
    return found if found.executors else Size(0, 0)


def _has(found: Size, wanted: Size) -> bool:
    return found.executors >= wanted.executors and found.cores >= wanted.cores
