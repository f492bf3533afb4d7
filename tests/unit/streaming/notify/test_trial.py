"""A test page: what the receiver gets, and what is said of it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.cli import main
from tests.unit.alerts.conftest import Web


@pytest.fixture
def web() -> Iterator[Web]:
    made = Web()
    yield made
    made.close()


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, web: Web, receiver: str) -> int:
    """Run the command, and return its exit code."""
    file = folder / "groupwatch.yaml"
    file.write_text(
        "clusters: [{name: prod, bootstrap_servers: ['127.0.0.1:1']}]\n"
        f"receivers: [{{name: oncall, webhook: {{url: '{web.url}'}}}}]\n"
        "owners: [{owner: team-a, groups: ['.*']}]\n"
    )
    arguments = ["groupwatch", "alerts", "test", "--config", str(file), "--receiver", receiver]
    monkeypatch.setattr("sys.argv", arguments)
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_it_begins_and_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, web: Web, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing stays open, and nobody is worried."""
    assert run(monkeypatch, tmp_path, web, "oncall") == 0
    assert re.sub(r"\d+ ms", "N ms", capsys.readouterr().out) == (
        "oncall: firing delivered after N ms\noncall: resolved delivered after N ms\n"
    )
    alerts = [body["alerts"][0] for body in web.bodies]
    assert [one["status"] for one in alerts] == ["firing", "resolved"]
    labels = {"alertname": "GroupwatchTest", "cluster": "prod", "group": "groupwatch-test"}
    assert alerts[0]["labels"] == {**labels, "severity": "info", "owner": "team-a"}


def test_a_refusal_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, web: Web, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what the receiver said; no end follows a beginning that nobody took."""
    web.answers = [(403, {})]
    assert run(monkeypatch, tmp_path, web, "oncall") == 1
    assert re.sub(r"\d+ ms", "N ms", capsys.readouterr().out) == (
        "oncall: firing rejected after N ms: HTTP 403: body\n"
    )
    assert len(web.bodies) == 1


def test_a_name_that_nobody_has_is_answered_with_those_there_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, web: Web, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bad usage, in one sentence."""
    assert run(monkeypatch, tmp_path, web, "nobody") == 2
    assert "there is no receiver 'nobody'; the configuration has: oncall" in capsys.readouterr().err
