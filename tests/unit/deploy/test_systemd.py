"""The systemd unit: systemd understands every line, and finds it closed."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UNIT = ROOT / "deploy" / "systemd" / "groupwatch.service"
EXPOSURE_MAX = 15
"""In tenths, as systemd-analyze takes it; 100 is a service without any protection."""


def _analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd-analyze is missing (Debian package: systemd)")
    return subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    """With a program that exists on this machine in place of ours."""
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/groupwatch/bin/groupwatch", "/bin/true"))

    done = _analyze("verify", "--man=no", str(unit))

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_service_is_closed() -> None:
    """As systemd itself rates it."""
    done = _analyze("security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", str(UNIT))

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Overall exposure level" in done.stdout


def test_the_unit_gives_the_job_the_time_that_it_takes_to_stop() -> None:
    """The job ends itself after 90 s; before that nobody may."""
    lines = UNIT.read_text().splitlines()

    assert "TimeoutStopSec=100" in lines
    assert "KillMode=mixed" in lines
