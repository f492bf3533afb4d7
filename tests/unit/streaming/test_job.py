"""The process that watches."""

import gc
import signal
from typing import Any, cast

import pytest

from streaming import job
from streaming.job import JobRefusedError, run


def test_python_looks_rarely_through_all_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch replaces most of it, which is no growth and leaves no cycles."""

    def refuses(*_: object) -> None:
        raise JobRefusedError("nothing can be watched")

    before, chosen = gc.get_threshold(), (0, 0, 0)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(job, "Monitor", refuses)
    try:
        with pytest.raises(JobRefusedError):
            run(cast("Any", type("Config", (), {"owners_file": None})()))
        chosen = gc.get_threshold()
    finally:
        gc.set_threshold(*before)

    assert chosen[0] * chosen[1] * chosen[2] >= 1_000 * before[0] * before[1]
