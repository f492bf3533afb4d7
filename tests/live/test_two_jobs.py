"""Two jobs on one checkpoint or one set of outputs: one works, and the other says why it does not."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from streaming.devkit.kafka.kafka import EmbeddedKafka
from tests.live.support.plain_job import JobProcess

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@dataclass
class Story:
    """How each of them ended."""

    same_checkpoint: int = -1
    same_outputs: int = -1
    ready_meanwhile: int = 0
    thawed: int = -1
    stopped: int = -1
    said_by_second: str = ""
    said_by_thawed: str = ""


def _live(kafka: EmbeddedKafka, first: JobProcess, twin: JobProcess, rival: JobProcess) -> Story:
    story = Story()
    first.start()
    twin.launch()
    story.same_checkpoint = twin.await_end()
    rival.launch()
    story.same_outputs = rival.await_end()
    story.said_by_second = rival.log.read_text()
    ready = first.get("/ready")
    story.ready_meanwhile = 0 if ready is None else ready.status_code
    first.freeze()
    rival.start()
    first.thaw()
    story.thawed = first.await_end()
    story.said_by_thawed = first.log.read_text()
    story.stopped = rival.terminate()
    return story


@pytest.fixture(scope="module")
def story(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    one, other = tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("rival")
    first = JobProcess(kafka.address, one)
    jobs = [first, first.twin(), JobProcess(kafka.address, other)]
    try:
        yield _live(kafka, *jobs)
    finally:
        for job in jobs:
            job.close()


def test_the_second_job_ends_with_a_sentence_and_the_first_goes_on(story: Story) -> None:
    """Whether they share the checkpoint or only the outputs."""
    assert (story.same_checkpoint, story.same_outputs) == (1, 1)
    assert "another groupwatch watches cluster 'test' with the same outputs" in story.said_by_second
    assert story.ready_meanwhile == 200


def test_a_job_that_was_frozen_while_another_took_over_ends(story: Story) -> None:
    """With the same sentence; the other one goes on until it is stopped."""
    assert story.thawed == 1
    assert "JobRefusedError: another groupwatch watches cluster 'test'" in story.said_by_thawed
    assert story.stopped == 0
