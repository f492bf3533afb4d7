"""The stage of the tests of history."""

from pathlib import Path

import pytest

from tests.unit.streaming.history.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "history.db")
