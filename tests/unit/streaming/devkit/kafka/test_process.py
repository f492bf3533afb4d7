"""Only processes that we started are stopped."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from streaming.devkit.kafka.process import Tracked, command_line, start_tracked, stop_tracked, tracked_by

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)", "our-mark"]
_DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
STUBBORN = [sys.executable, "-c", _DEAF + "print(1, flush=True); time.sleep(600)", "our-mark"]


def _start(tmp_path: Path, command: list[str] = SLEEP) -> Path:
    pid_file = tmp_path / "it.pid"
    start_tracked(command, mark="our-mark", pid_file=pid_file, output=tmp_path / "out", cwd=tmp_path)
    return pid_file


@pytest.mark.parametrize("hard", [False, True])
def test_a_started_process_is_found_and_stopped(tmp_path: Path, hard: bool) -> None:
    """The pid file leads to it, and is gone with it."""
    pid_file = _start(tmp_path)
    tracked = tracked_by(pid_file)

    assert tracked is not None
    assert stop_tracked(pid_file, hard=hard)
    assert command_line(tracked.pid) == ""
    assert not pid_file.exists()


def test_one_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    """After the grace nobody is asked again."""
    pid_file = _start(tmp_path, STUBBORN)
    tracked = tracked_by(pid_file)
    assert tracked is not None
    while not (tmp_path / "out").read_text():  # it ignores signals from here on
        pass

    assert stop_tracked(pid_file, grace_seconds=0.2)
    assert command_line(tracked.pid) == ""


def test_a_process_id_used_again_is_left_alone(tmp_path: Path) -> None:
    """Another program under the old number is not ours: the stale file goes, the program stays."""
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pid_file = tmp_path / "it.pid"
    pid_file.write_bytes(msgspec.json.encode(Tracked(stranger.pid, "our-mark")))
    try:
        assert not stop_tracked(pid_file)
        assert stranger.poll() is None
        assert not pid_file.exists()
    finally:
        stranger.kill()
        stranger.wait()


def test_a_broken_pid_file_names_nobody(tmp_path: Path) -> None:
    """Half a file after a crash is no process."""
    (tmp_path / "it.pid").write_text('{"pid": 1')

    assert tracked_by(tmp_path / "it.pid") is None
