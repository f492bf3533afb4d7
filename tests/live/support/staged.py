"""A scene whose tests look at one story: what was seen while it was played."""

from typing import Generic, TypeVar

from streaming.devkit.kafka.kafka import EmbeddedKafka
from tests.live.support.scene import Scene
from tests.live.support.stage import Job

StoryT = TypeVar("StoryT")


class Staged(Generic[StoryT]):
    """The cluster with its job while it is played; base of what each module needs besides."""

    def __init__(self, kafka: EmbeddedKafka, job: Job, story: StoryT, mode: str = "full") -> None:
        """Nothing runs yet."""
        self.kafka = kafka
        self.job = job
        self.scene = Scene(kafka, job, mode)
        self.story = story

    def end(self) -> None:
        """End every process and client."""
        self.scene.end()
        self.job.stop()
