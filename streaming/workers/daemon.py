"""The process that Spark forks its Python workers from: it has imported all that they need.

Spark's own daemon imports nothing, so each worker takes a second for its imports, and memory of its own for
what is the same in all of them.  Their number libraries run without threads here (Spark sets
``OMP_NUM_THREADS``), so that nothing is lost in a fork.
"""

import gc

from pyspark import (
    daemon,
    worker,  # noqa: F401 - imported for those that are forked
)

from streaming.workers import state_stream
from streaming.workers.collector import RareCollector


def main() -> None:
    """Fork workers until Spark ends."""
    state_stream.install()
    # The collector of a worker would write into every object, and so copy the memory that all share.
    gc.collect()
    gc.freeze()
    daemon.gc = RareCollector()
    daemon.manager()


if __name__ == "__main__":
    main()
