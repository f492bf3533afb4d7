"""One cluster's mark: it keeps other processes away from the checkpoint and the outputs."""

from collections.abc import Callable

from pyspark.sql import SparkSession

from streaming import pipeline
from streaming.config import ClusterPlan
from streaming.control import mark_of
from streaming.driver.mark_keeper import MarkKeeper
from streaming.driver.mark_places import FilePlace, Place, TopicPlace


class OurMark:
    """Claimed before the first query, kept across restarts of the query, and dropped at the end."""

    def __init__(self, spark: SparkSession, plan: ClusterPlan, wait: Callable[[float], bool]) -> None:
        """Claim nothing yet; ``wait`` waits some seconds and says whether the job is to stop."""
        self._spark = spark
        self._plan = plan
        self._wait = wait
        self._keeper: MarkKeeper | None = None

    @property
    def taken(self) -> str:
        """Return the sentence about who took it from us; "" if nobody did, or it is not claimed."""
        return "" if self._keeper is None else self._keeper.taken

    @property
    def is_ours(self) -> bool:
        """Say whether it is claimed and nobody took it."""
        return self._keeper is not None and not self.taken

    def ensure(self) -> None:
        """Check that we may still write.

        Raises:
            MarkHeldError: another process may by now.
        """
        if self._keeper is not None:
            self._keeper.ensure()

    def claim(self) -> MarkKeeper:
        """Make sure that no other process has, or can take, the checkpoint or the outputs.

        Raises:
            MarkHeldError: another process has them.
            kafka.errors.KafkaError: Kafka does not answer.
        """
        if self._keeper is not None:
            return self._keeper
        plan, folder = self._plan, pipeline.Folder(self._spark, self._plan.checkpoint)
        outputs = (plan.transitions_topic, plan.alerts_topic)
        mine = mark_of(plan.cluster, outputs, pipeline.run_of(folder))
        places: list[Place] = [TopicPlace(plan.output, plan.control_topic, mine)]
        places.append(FilePlace(folder, mine.token, plan.checkpoint))
        keeper = MarkKeeper(mine, places)
        try:
            keeper.claim(self._wait)
        except BaseException:
            keeper.release()
            raise
        self._keeper = keeper
        return keeper

    def drop(self) -> None:
        """Release it."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.release()
