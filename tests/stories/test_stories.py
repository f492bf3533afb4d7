"""Every story is told by the model as its file says (see ``telling``)."""

from pathlib import Path

import pytest

from tests.stories.telling import STORIES, tell


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in STORIES])
def test_story(path: Path) -> None:
    """The model answers each block as the story says."""
    story = path.read_text()

    assert tell(story) == story


def test_stories_are_found() -> None:
    """A run without stories would prove nothing."""
    assert len(STORIES) >= 20
