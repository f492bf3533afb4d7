"""`--html` of explain and replay."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from streaming import cli
from tests.unit.streaming.serving.one_file.made_captures import Document

SERVER_LOG = Path(__file__).parents[4] / "golden" / "logs" / "kafka-4.3.1-server.log"
EXPLAIN = ("explain", "--cluster", "eu", "--group", "g", "--url", "http://127.0.0.1:1")


def invoked(*arguments: str) -> Result:
    """Run a command."""
    return CliRunner().invoke(cli.application(arguments), list(arguments))


def test_replay_writes_a_file_and_prints_no_story(tmp_path: Path) -> None:
    """It says what it wrote, and how many lines it used, on stderr."""
    path = tmp_path / "incident.html"
    result = invoked("replay", "--html", str(path), "--group", "slow", str(SERVER_LOG))
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"wrote 1 group to {path}" in result.stderr
    assert "lines used" in result.stderr
    assert [one["group"] for one in Document(path.read_bytes()).captured["groups"]] == ["slow"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("replay", str(SERVER_LOG), "--html", "a.html", "--json"), "takes the place"),
        (("replay", str(SERVER_LOG), "--html", "a.html", "--explain"), "takes the place"),
        (("replay", str(SERVER_LOG), "--group", "g"), "--group needs --explain or --html"),
        (("replay", str(SERVER_LOG), "--html", "no/such/folder/a.html"), "there is no folder"),
        ((*EXPLAIN, "--html", "a.html", "--json"), "takes the place"),
        ((*EXPLAIN, "--html", "no/such/folder/a.html"), "there is no folder"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: tuple[str, ...], says: str) -> None:
    """Before anything is read."""
    result = invoked(*arguments)
    assert result.exit_code == 2
    assert says in result.stderr


def test_no_file_is_written_where_nobody_answers(tmp_path: Path) -> None:
    """The sentence is that of explain."""
    path = tmp_path / "incident.html"
    result = invoked(*EXPLAIN, "--html", str(path))
    assert result.exit_code == 1
    assert "no groupwatch answers" in result.stderr
    assert not path.exists()
