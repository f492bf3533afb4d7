"""The model of the coordinator against a real one: the same requests, answer by answer."""

from pathlib import Path

import pytest

from tests.oracle.duel.playing import run, start

pytestmark = pytest.mark.kafka


def test_a_real_coordinator_does_what_the_model_does(tmp_path: Path) -> None:
    """Answers and their times, the log word for word, and every record; of random groups."""
    with start(tmp_path) as cluster:
        differences, compared = run(cluster, groups=6, seconds=15, seed=41)

    assert not differences, "\n".join(differences)
    assert compared > 120
