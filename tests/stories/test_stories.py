"""Every story is told by the model as its file says (see ``telling``)."""

import re
from pathlib import Path

import pytest

from coordinator_model.groups.core.inferences import Inference
from tests.stories.telling import STORIES, tell


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in STORIES])
def test_story(path: Path) -> None:
    """The model answers each block as the story says."""
    story = path.read_text()

    assert tell(story) == story


def test_stories_are_found() -> None:
    """A run without stories would prove nothing."""
    assert len(STORIES) >= 20


def test_each_inferred_transition_names_its_rule() -> None:
    """Whoever asks why the mirror believes so finds the place in the code."""
    told = [line for path in STORIES for line in path.read_text().split("\n") if re.match(r"#\d", line)]
    inferred = [line.split(" inferred ", 1)[1] for line in told if " inferred " in line]
    rules = {f"({rule})" for rule in Inference}

    assert inferred
    assert {line.split()[0] for line in inferred} <= rules
