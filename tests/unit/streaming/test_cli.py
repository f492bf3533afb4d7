"""The commands: what they print, and how they end."""

import gzip
import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from streaming import cli
from streaming.config.config import Config
from streaming.replay.described_records import describe_lines

MINIMAL = "clusters:\n  - {name: a, bootstrap_servers: [127.0.0.1:9092]}\n"
GROUP_KEY = "0002000161"

Invoke = Callable[..., Result]


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    monkeypatch.delenv("GROUPWATCH_DEBUG", raising=False)

    def call(*arguments: str, stdin: str = "") -> Result:
        return CliRunner().invoke(cli.application(arguments), list(arguments), input=stdin)

    return call


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "groupwatch.yaml"
    path.write_text(MINIMAL)
    return path


def test_check_config_is_quiet_about_a_good_file(invoke: Invoke, config_file: Path) -> None:
    """Exit 0 and the names of the clusters."""
    result = invoke("check-config", str(config_file))
    assert result.exit_code == 0
    assert "is fine: a" in result.stdout


def test_check_config_prints_every_mistake_and_exits_2(invoke: Invoke, config_file: Path) -> None:
    """Each on a line of its own with its path."""
    config_file.write_text(MINIMAL + "http: {port: 70000}\nchekpoint: x\n")
    result = invoke("check-config", str(config_file))
    assert result.exit_code == 2
    lines = result.stdout.splitlines()
    assert len(lines) == 2
    assert any(line.startswith("http.port: ") for line in lines)
    assert any("did you mean 'checkpoint'" in line for line in lines)


def test_check_config_looks_at_client_properties(invoke: Invoke, config_file: Path) -> None:
    """A property that would only fail at the first connection is found before."""
    config_file.write_text(MINIMAL.replace("]}", "], client: {ssl.no.such.thing: x}}"))
    result = invoke("check-config", str(config_file))
    assert result.exit_code == 2
    assert result.stdout.startswith("clusters[0].client: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("run", "--config", "/does/not/exist"),
        ("notify",),
        ("check-config",),
        ("check-config", "/does/not/exist"),
        ("replay",),
        ("replay", "/does/not/exist"),
        ("no-such-command",),
        ("demo", "--duration", "soon"),
    ],
)
def test_bad_usage_is_exit_2(invoke: Invoke, arguments: tuple[str, ...]) -> None:
    """Whatever is missing or wrong on the command line."""
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", ["run", "notify"])
def test_a_bad_configuration_is_exit_2_with_every_mistake(
    invoke: Invoke, config_file: Path, command: str
) -> None:
    """The long-running commands refuse as check-config does."""
    config_file.write_text("clusters: []\nhttp: {port: x}\n")
    result = invoke(command, "--config", str(config_file))
    assert result.exit_code == 2
    assert "clusters:" in result.stderr
    assert "http.port:" in result.stderr


def test_notify_without_receivers_is_refused(invoke: Invoke, config_file: Path) -> None:
    """A process that could do nothing does not start."""
    result = invoke("notify", "--config", str(config_file))
    assert result.exit_code == 2
    assert "no receivers" in result.stderr


@pytest.mark.parametrize(("flags", "expected"), [((), True), (("--no-notify",), False)])
def test_run_hands_over_to_the_job(
    invoke: Invoke,
    config_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
    expected: bool,
) -> None:
    """With the configuration, and with or without the notifier; its exit code is ours."""
    from streaming import jars, job  # noqa: PLC0415 - loads Spark's Python side

    told: list[tuple[str, bool]] = []

    def fake(config: Config, *, notify: bool, load: object) -> int:
        told.append((config.clusters[0].name, notify))
        return 7

    monkeypatch.setattr(job, "run", fake)
    begun: list[object] = []
    monkeypatch.setattr(jars, "begin_jvm", begun.append)
    result = invoke("run", "--config", str(config_file), *flags)
    assert (result.exit_code, told) == (7, [("a", expected)])
    assert len(begun) == 1, "Spark's JVM starts beside Python's imports"


def test_a_failure_is_one_sentence_and_exit_1(
    invoke: Invoke, config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No traceback, unless --debug asks for it."""
    from streaming import jars, job  # noqa: PLC0415 - loads Spark's Python side

    def fake(config: Config, *, notify: bool, load: object) -> int:
        raise OSError(98, "cannot listen on 0.0.0.0 port 1: in use")

    monkeypatch.setattr(job, "run", fake)
    monkeypatch.setattr(jars, "begin_jvm", lambda _: None)
    result = invoke("run", "--config", str(config_file))
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == "groupwatch: cannot listen on 0.0.0.0 port 1: in use"
    assert "Traceback" not in result.stderr
    monkeypatch.setenv("GROUPWATCH_DEBUG", "1")
    assert "Traceback" in invoke("run", "--config", str(config_file)).stderr


def test_decode_answers_each_line(invoke: Invoke) -> None:
    """One object a line, errors included, and it goes on."""
    lines = [
        json.dumps({"key": GROUP_KEY, "value": None}),
        "",
        "not json",
        json.dumps({"key": "zz", "value": None}),
        json.dumps({"key": None, "value": None}),
        json.dumps({"key": 7}),
        json.dumps({"value": "00"}),
        json.dumps([1]),
        "[" * 5_000,
        json.dumps({"key": GROUP_KEY, "value": None}),
    ]
    result = invoke("decode", stdin="\n".join(lines))
    told = [json.loads(line) for line in result.stdout.splitlines()]
    good = {"type": 2, "name": "GroupMetadata", "key": {"group": "a"}, "version": None, "value": None}
    assert result.exit_code == 0
    assert [told[0], told[-1]] == [good, good]
    assert len(told) == 9
    assert all(set(one) == {"error"} for one in told[1:-1])


def test_decode_takes_bytes_that_are_no_text() -> None:
    """A line in no encoding at all is an error like others."""
    out = io.StringIO()
    describe_lines(io.BytesIO(b"\xff\xfe\n" + json.dumps({"key": GROUP_KEY}).encode()), out)
    first, second = out.getvalue().splitlines()
    assert "error" in json.loads(first)
    assert json.loads(second)["type"] == 2


def test_replay_of_an_unknown_timezone_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    """A slip in the zone would move every time."""
    log = tmp_path / "server.log"
    log.write_text("x\n")
    result = invoke("replay", str(log), "--timezone", "Europe/Nowhere")
    assert result.exit_code == 2
    assert "--timezone" in result.stderr


def test_replay_says_on_demand_what_it_inferred_by_which_rule(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever doubts an inferred transition finds its rule; the topic does not tell it."""
    monkeypatch.setattr(cli, "_set_up_log", lambda: caplog.set_level(logging.DEBUG))
    log = Path(__file__).parents[2] / "golden" / "logs" / "kafka-4.3.1-request.log"

    invoke("replay", str(log))
    assert "inferred" not in caplog.text
    monkeypatch.setenv("GROUPWATCH_DEBUG", "1")
    invoke("replay", str(log))
    assert "g1: CompletingRebalance 1 inferred: join_answered" in caplog.text


def test_replay_of_a_damaged_file_is_one_sentence(invoke: Invoke, tmp_path: Path) -> None:
    """A compressed log that was cut off is told as such, with its name."""
    log = tmp_path / "server.log.gz"
    log.write_bytes(gzip.compress(b"[2026-01-01 00:00:00,000] INFO x\n" * 1000)[:60])
    result = invoke("replay", str(log))
    assert result.exit_code == 1
    assert result.stderr.startswith("groupwatch: ")
    assert "server.log.gz" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", ["check-config", "replay", "decode"])
def test_light_commands_start_without_spark(config_file: Path, command: str, tmp_path: Path) -> None:
    """They import neither pyspark nor pandas."""
    argument = {"check-config": [str(config_file)], "replay": [str(config_file)], "decode": []}[command]
    script = (
        "import sys\nfrom streaming import cli\n"
        f"sys.argv = ['groupwatch', {command!r}, *{argument!r}]\n"
        "try:\n    cli.main()\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('pyspark', 'pandas') if m in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input="", capture_output=True, text=True, check=True, timeout=240
    )
    assert done.stderr.splitlines()[-1] == "[]"


def test_python_m_streaming_is_groupwatch() -> None:
    """Both ways in are the same."""
    done = subprocess.run(
        [sys.executable, "-m", "streaming", "--help"], capture_output=True, text=True, check=True, timeout=240
    )
    for command in ("run", "notify", "demo", "kafka", "replay", "decode", "check-config", "bench"):
        assert f" {command} " in done.stdout


def test_a_failure_in_the_kafka_commands_is_a_sentence_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are written elsewhere and end the same way."""

    def broken(arguments: object) -> Callable[..., None]:
        def call(_: object, **_more: object) -> None:
            raise PermissionError(13, "Permission denied", "kafka-data")

        return call

    monkeypatch.setattr(cli, "application", broken)
    monkeypatch.setattr(sys, "argv", ["groupwatch", "kafka", "up"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == "groupwatch: Permission denied: kafka-data\n"


@pytest.mark.parametrize(
    "words",
    [
        ["--log-format=json", "check-config", "FILE", "--log-level", "debug"],
        ["check-config", "--log-level", "debug", "FILE", "--log-format", "json"],
    ],
)
def test_options_of_the_log_are_understood_anywhere(
    words: list[str], config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the command and behind it, with an equals sign and without."""
    for variable in ("GROUPWATCH_LOG_LEVEL", "GROUPWATCH_LOG_FORMAT"):
        monkeypatch.setenv(variable, "")
    monkeypatch.setattr(sys, "argv", ["groupwatch", *(str(config_file) if w == "FILE" else w for w in words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    assert (os.environ["GROUPWATCH_LOG_LEVEL"], os.environ["GROUPWATCH_LOG_FORMAT"]) == ("debug", "json")


@pytest.mark.parametrize(
    "words", [["--log-level", "debug", "silence", "add"], ["kafka", "--log-format=json", "up"]]
)
def test_options_of_the_log_hide_no_command(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands of ``silence`` and ``kafka`` are found, whatever stands before them."""
    for variable in ("GROUPWATCH_LOG_LEVEL", "GROUPWATCH_LOG_FORMAT"):
        monkeypatch.setenv(variable, "")
    monkeypatch.setattr(sys, "argv", ["groupwatch", *words, "--help"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    assert "--" in capsys.readouterr().out


def test_the_version_is_that_of_the_installation(invoke: Invoke) -> None:
    """As pip knows it."""
    result = invoke("--version")
    assert (result.exit_code, result.stdout) == (0, f"groupwatch {metadata.version('groupwatch')}\n")


@pytest.mark.parametrize(("line", "found"), [("groupwatch ka", "kafka"), ("groupwatch kafka u", "up")])
def test_a_shell_completes_commands(
    line: str, found: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also those of 'kafka', which are loaded only when they are wanted."""
    monkeypatch.setenv("_GROUPWATCH_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setattr(sys, "argv", ["groupwatch"])
    with pytest.raises(SystemExit):
        cli.main()
    assert f'"{found}"' in capsys.readouterr().out


def test_debug_is_understood_after_the_command(
    config_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """People add it to the end of what just failed."""
    monkeypatch.setenv("GROUPWATCH_DEBUG", "")
    monkeypatch.setattr(sys, "argv", ["groupwatch", "check-config", str(config_file), "--debug"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    assert "is fine" in capsys.readouterr().out
