"""The row about delivery measures real receivers, and counts what it says."""

from pathlib import Path

import pytest

from streaming.devkit.bench import delivery


@pytest.mark.parametrize("kind", ["webhook", "mail", "chat", "pager", "log"])
def test_each_alert_is_taken_and_timed(kind: str, tmp_path: Path) -> None:
    """These kinds send each alert for itself."""
    row = delivery.KINDS[kind](tmp_path, 3, 20)
    assert row["at_once_attempts"] == 20
    assert 0 <= row["p50_ms"] <= row["p99_ms"]
    assert 0 < row["at_once_p50_ms"] <= row["at_once_p99_ms"] <= row["at_once_last_ms"]
    assert row["at_once_cpu_s"] > 0


@pytest.mark.parametrize(
    ("kind", "missing"),
    [("alertmanager", "prometheus-alertmanager"), ("chat", "openssl"), ("pager", "openssl")],
)
def test_what_is_not_installed_is_left_out(
    kind: str, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And said to be."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert delivery.KINDS[kind](tmp_path, 3, 20) == {"skipped": f"{missing} is not on the PATH"}
