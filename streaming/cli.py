"""The commands of ``groupwatch``.

Each command imports what it needs when it runs, so that ``check-config``, ``decode`` and ``replay`` start
without Spark.  A failure is one clear sentence on stderr and an exit code: 1 failed, 2 bad usage or
configuration. ``--debug`` adds the traceback, and for ``replay`` the rule that inferred each inferred
transition.  The file is long because every command declares its options here.
"""

# ruff: noqa: PLC0415 - late imports are this module's purpose, see above

import functools
import importlib
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from alerts.story import Explanation
    from streaming.config import Config
    from streaming.replay import Skipped
    from streaming.serving.one_file import Captured

FAILED = 1
BAD_USAGE = 2

_DEBUG_VARIABLE = "GROUPWATCH_DEBUG"
_LEVEL_VARIABLE = "GROUPWATCH_LOG_LEVEL"
_FORMAT_VARIABLE = "GROUPWATCH_LOG_FORMAT"
_ANYWHERE = {"--debug": 1, "--log-level": 2, "--log-format": 2}
"""Options of all commands -> words that each takes; they may stand before and behind the command."""

_ConfigOption = Annotated[
    Path, typer.Option("--config", exists=True, dir_okay=False, readable=True, help="The configuration file.")
]
_HtmlOption = Annotated[
    Path | None,
    typer.Option(
        "--html",
        dir_okay=False,
        writable=True,
        help="Write the page of the group as one HTML file, and print no story.",
    ),
]


class CommandError(Exception):
    """Ends a command; the message is the sentence for the user."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def _is_debug() -> bool:
    return bool(os.environ.get(_DEBUG_VARIABLE))


def _guarded(command: Callable[..., int]) -> Callable[..., None]:
    """Turn a command's result and failures into exit codes and one sentence."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            code = command(*args, **options)
            sys.stdout.flush()
        except KeyboardInterrupt:
            code = FAILED
        except BrokenPipeError:
            # The reader of our output is gone (``| head``); Python would complain again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = FAILED
        except Exception as error:
            code = _tell(error)
        raise typer.Exit(code)

    return run


def _tell(error: Exception) -> int:
    """Print what went wrong; return the exit code."""
    if _is_debug():
        traceback.print_exc()
    sentence = str(error) or type(error).__name__
    known = getattr(error, "code", None) if isinstance(error, CommandError) else None
    if known is None and not isinstance(error, OSError) and not _is_ours(error):
        sentence = f"{type(error).__name__}: {sentence} (--debug shows where)"
    elif isinstance(error, OSError) and error.strerror:
        sentence = f"{error.strerror}{f': {error.filename}' if error.filename else ''}"
    from alerts.alert import printable

    told = "\n".join(map(printable, f"groupwatch: {sentence}".split("\n")))
    print(told, file=sys.stderr)  # noqa: T201 - a command's own words
    return FAILED if known is None else known


def _is_ours(error: Exception) -> bool:
    """Say whether an exception's message was written for users."""
    return type(error).__module__.split(".")[0] in {"streaming", "alerts", "coordinator_model"}


def _set_up_log() -> None:
    from streaming.logs import LogFormat, LogLevel, set_up

    level = os.environ.get(_LEVEL_VARIABLE, "") or ("debug" if _is_debug() else "info")
    set_up(LogLevel(level), LogFormat(os.environ.get(_FORMAT_VARIABLE, "") or "text"))


def _load(path: Path) -> "Config":
    from streaming.config import ConfigError, load_config, notes

    try:
        config = load_config(path)
    except ConfigError as error:
        lines = "\n".join(f"  {line}" for line in str(error).splitlines())
        raise CommandError(f"{path} cannot be used:\n{lines}", BAD_USAGE) from error
    for note in notes(config):
        logging.getLogger("groupwatch").info("%s", note)
    return config


def run(
    config: _ConfigOption,
    no_notify: Annotated[
        bool, typer.Option("--no-notify", help="Deliver no alerts; a separate 'groupwatch notify' does.")
    ] = False,
) -> int:
    """Watch the configured clusters until stopped; deliver alerts and serve metrics, API and page."""
    _set_up_log()
    loaded = _load(config)
    _refuse_client_properties(loaded)
    from streaming.config import load_config
    from streaming.jars import begin_jvm

    begin_jvm(loaded.spark)
    # These imports take as long as the JVM, so they come while it starts.
    from streaming import job

    return job.run(loaded, notify=not no_notify, load=lambda: load_config(config))


def notify(config: _ConfigOption) -> int:
    """Deliver alerts from a process of its own, beside 'groupwatch run --no-notify'."""
    _set_up_log()
    loaded = _load(config)
    if not loaded.receivers:
        raise CommandError(f"{config} has no receivers, so there is nobody to notify", BAD_USAGE)
    _refuse_client_properties(loaded)
    from streaming import notify as notifying
    from streaming.config import load_config

    return notifying.run(loaded, load=lambda: load_config(config))


def demo(
    duration: Annotated[
        float | None,
        typer.Option(help="Seconds to watch; by default until all planned alerts came.", min=1),
    ] = None,
    config_out: Annotated[
        Path | None, typer.Option(help="Write the demo's configuration to this file.")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="SERVERS",
            help="Only make the trouble, on this cluster, round after round; adds topics and groups to it.",
        ),
    ] = None,
) -> int:
    """Start a real Kafka and consumers that misbehave, watch them, and show what was detected."""
    _set_up_log()
    if on is not None:
        load = _part("streaming.devkit.demo.load", "demo")
        try:
            return int(load.run_load(on))
        except load.LoadError as error:
            raise CommandError(str(error)) from error
    module = _part("streaming.devkit.demo.demo", "demo")
    result: int = module.run_demo(duration, config_out)
    return result


def replay(
    files: Annotated[
        list[Path],
        typer.Argument(
            exists=True,
            dir_okay=False,
            readable=True,
            help="server.log, kafka-request.log (plain or .gz), or JSON Lines of captured rows.",
        ),
    ],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON Lines instead of a table.")] = False,
    alerts: Annotated[bool, typer.Option("--alerts", help="Print alerts, too.")] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="Use its rules and its first cluster's filter and time zone.",
        ),
    ] = None,
    timezone: Annotated[
        str | None, typer.Option(help="Time zone of log lines; else the configuration's, or UTC.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Print each group's story in words.")] = False,
    group: Annotated[
        str | None, typer.Option(help="With --explain or --html: tell of this group only.")
    ] = None,
    html: _HtmlOption = None,
) -> int:
    """Analyse log files or captured rows after an incident, without Spark or Kafka."""
    if group is not None and not explain and html is None:
        raise CommandError("--group needs --explain or --html", BAD_USAGE)
    if html is not None and (as_json or alerts or explain):
        raise CommandError("--html takes the place of --json, --alerts and --explain", BAD_USAGE)
    _refuse_folder_of(html)
    settings, zone = _replay_settings(config, timezone)
    if _is_debug():
        _set_up_log()  # by which rule each inferred transition was inferred
    from streaming import replay as replay_files
    from streaming import replay as replay_output
    from streaming.replay import replay as play

    skipped = replay_files.Skipped()
    if html is not None:
        from streaming.serving import one_file

        captured = one_file.captured_replay(
            files, config_rules=settings, timezone=zone, group=group, skipped=skipped
        )
        _write_html(captured, html)
        print(f"groupwatch: {skipped.sentence()}", file=sys.stderr)  # noqa: T201 - a command's own words
        return 0
    happened = play(files, config_rules=settings, timezone=zone, skipped=skipped)
    if explain:
        _explain_replay(list(happened), group, skipped, as_json=as_json)
    else:
        replay_output.print_replay(happened, as_json=as_json, alerts=alerts)
    print(f"groupwatch: {skipped.sentence()}", file=sys.stderr)  # noqa: T201 - a command's own words
    return 0


def _explain_replay(happened: list[Any], group: str | None, skipped: "Skipped", *, as_json: bool) -> None:
    from streaming import replay, serving

    told = serving.explain_replay(happened, replay.CLUSTER, group, skipped.last_ms, skipped.reports)
    serving.print_explanations(told, as_json=as_json)


def explain(
    *,
    cluster: Annotated[str, typer.Option("--cluster", help="The cluster's name in the configuration.")],
    group: Annotated[str, typer.Option("--group", help="The consumer group.")],
    since: Annotated[
        str, typer.Option("--since", help="How far back: a span (2h, 30m) or a time (2026-11-21T03:00, UTC).")
    ] = "1h",
    config: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, readable=True, help="Read the topics named in it."),
    ] = None,
    url: Annotated[str | None, typer.Option(help="Ask this running groupwatch: http://host:port")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    html: _HtmlOption = None,
) -> int:
    """Tell what happened to a group, who or what caused it, what it cost and what to do."""
    from alerts.delivery import wall_clock_ms
    from streaming import serving

    if (config is None) == (url is None):
        raise CommandError("give either --config FILE or --url http://host:port", BAD_USAGE)
    if html is not None and as_json:
        raise CommandError("--html takes the place of --json", BAD_USAGE)
    _refuse_folder_of(html)
    now_ms = wall_clock_ms()
    try:
        since_ms = serving.parse_since(since, now_ms)
    except ValueError as error:
        raise CommandError(f"--since: {error}", BAD_USAGE) from error
    told, captured = _asked(config, url, cluster, group, since_ms=since_ms, now_ms=now_ms)
    if html is not None:
        _write_html(captured(), html)
    else:
        serving.print_explanations([told()], as_json=as_json)
    return 0


def _asked(
    config: Path | None, url: str | None, cluster: str, group: str, *, since_ms: int, now_ms: int
) -> "tuple[Callable[[], Explanation], Callable[[], Captured]]":
    """Return what asks a running job, or the topics, for a group's story, and for its page."""
    from streaming import serving

    if config is None:
        address = str(url)
        return (
            lambda: serving.explain_by_url(address, cluster, group, since_ms),
            lambda: _one_file().captured_by_url(address, cluster, group, since_ms=since_ms, now_ms=now_ms),
        )
    loaded = _load(config)
    chosen = next((one for one in loaded.clusters if one.name == cluster), None)
    if chosen is None:
        known = ", ".join(one.name for one in loaded.clusters)
        raise CommandError(f"{config} has no cluster {cluster!r}; it has {known}", BAD_USAGE)
    return (
        lambda: serving.explain_by_config(loaded, chosen, group, since_ms=since_ms, now_ms=now_ms),
        lambda: _one_file().captured_by_config(loaded, chosen, group, since_ms=since_ms, now_ms=now_ms),
    )


def _one_file() -> Any:
    """Return what makes a page of its own: who wants none does not wait for it."""
    from streaming.serving import one_file

    return one_file


def _refuse_folder_of(html: Path | None) -> None:
    """Say at once, and not after a long replay, that a file cannot be written."""
    if html is not None and not html.parent.is_dir():
        raise CommandError(f"--html: there is no folder {html.parent}", BAD_USAGE)


def _write_html(captured: "Captured", path: Path) -> None:
    from streaming.serving import one_file

    path.write_bytes(one_file.document(captured))
    count = len(captured.groups)
    told = "1 group" if count == 1 else f"{count} groups"
    left = f", {captured.left_out} more left out" if captured.left_out else ""
    sentence = f"groupwatch: wrote {told} to {path}{left}; a browser opens it from disk"
    print(sentence, file=sys.stderr)  # noqa: T201 - a command's own words


def _replay_settings(config: Path | None, timezone: str | None) -> tuple[bytes | None, str]:
    settings, zone = None, "UTC"
    if config is not None:
        from streaming.config import settings_json

        loaded = _load(config)
        cluster = loaded.clusters[0]
        settings, zone = settings_json(loaded, cluster), cluster.events.timezone
    if timezone is not None:
        from streaming.config import parse_timezone

        try:
            zone = parse_timezone(timezone)
        except ValueError as error:
            raise CommandError(f"--timezone: {error}", BAD_USAGE) from error
    return settings, zone


def decode() -> int:
    """Decode records of __consumer_offsets; reads JSON Lines {"key": hex, "value": hex or null} on stdin."""
    from streaming.replay import describe_lines

    describe_lines(sys.stdin.buffer, sys.stdout)
    return 0


def check_config(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="The configuration file.")
    ],
) -> int:
    """Print every mistake in a configuration file, with its path in the file."""
    from streaming.config import ConfigError, load_config, notes

    try:
        config = load_config(file)
    except ConfigError as error:
        typer.echo(str(error))
        return BAD_USAGE
    mistakes = _client_mistakes(config)
    for mistake in mistakes:
        typer.echo(mistake)
    if mistakes:
        return BAD_USAGE
    for note in notes(config):
        typer.echo(f"note: {note}")
    typer.echo(f"{file} is fine: {', '.join(cluster.name for cluster in config.clusters)}")
    return 0


def _client_mistakes(config: "Config") -> list[str]:
    """Return mistakes in Kafka client properties, which only the Kafka clients' package can find."""
    clients = [
        (f"clusters[{n}].client", cluster.bootstrap_servers, cluster.client)
        for n, cluster in enumerate(config.clusters)
    ]
    if config.output.bootstrap_servers:
        clients.append(("output.client", config.output.bootstrap_servers, config.output.client))
    if not any(client for _, _, client in clients):
        return []
    from streaming.kafka_address import KafkaAddress
    from streaming.kafka_clients import python_options

    found = []
    for path, servers, client in clients:
        try:
            python_options(KafkaAddress(tuple(servers), client))
        except (ValueError, OSError) as error:
            found.append(f"{path}: {error}")
    return found


def _refuse_client_properties(config: "Config") -> None:
    mistakes = _client_mistakes(config)
    if mistakes:
        raise CommandError("; ".join(mistakes), BAD_USAGE)


def test(
    config: _ConfigOption,
    receiver: Annotated[str, typer.Option(help="The receiver's name in the configuration.")],
) -> int:
    """Send a test page (one alert that begins and ends) to one receiver, and print what came back."""
    from streaming.notify import NoReceiverError, send_test_page

    try:
        answers = list(send_test_page(_load(config), receiver))
    except NoReceiverError as error:
        raise CommandError(str(error), BAD_USAGE) from None
    for sentence, _ in answers:
        typer.echo(sentence)
    return 0 if all(is_taken for _, is_taken in answers) else FAILED


def jars(
    *,
    archive: Annotated[
        bool,
        typer.Option(
            "--archive",
            help="Also archive the classes that a start loads, once: half a minute that makes starts faster.",
        ),
    ] = False,
) -> int:
    """Fetch the jars of Spark's Kafka connector, as an image needs them, and print their paths."""
    from streaming.jars import ensure_jars

    for jar in ensure_jars("connector"):
        typer.echo(str(jar))
    if archive:
        _set_up_log()  # Spark's as well, as in a run
        from streaming.pipeline import make_archive

        make_archive()
    return 0


def bench(context: typer.Context) -> int:
    """Measure throughput, size of state and latency, beside what Spark alone needs; prints JSON."""
    module = _part("streaming.devkit.bench", "bench")
    result: int = module.main(list(context.args))
    return result


def _part(name: str, command: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise CommandError(f"'{command}' is not part of this build") from None


def _kafka_app(*, wanted: bool) -> typer.Typer:
    """Return the ``kafka`` commands; unless wanted they are only named, since they load Kafka's client."""
    summary = "Start, stop or look at an embedded Kafka cluster whose logs are shipped: up, down, status."
    if not wanted:
        return typer.Typer(help=summary)
    module = _part("streaming.devkit.kafka.commands", "kafka")
    made: typer.Typer = module.kafka_app
    made.info.help = summary
    return made


def _silence_app(*, wanted: bool) -> typer.Typer:
    """Return the ``silence`` commands; unless wanted they are only named, since they load Kafka's client."""
    summary = "Keep receivers from being told for a while: add, list, expire."
    if not wanted:
        return typer.Typer(help=summary)
    from streaming.silences import silence_app

    return silence_app


def _print_version(wanted: bool) -> None:
    if wanted:
        from streaming.version import version

        typer.echo(f"groupwatch {version()}")
        raise typer.Exit


def application(arguments: Sequence[str]) -> typer.Typer:
    """Return the commands for these arguments."""
    from streaming.logs import LogFormat, LogLevel

    app = typer.Typer(
        name="groupwatch",
        help="Mirrors Kafka's group coordinator from outside; says who broke which consumer group, and why.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )

    @app.callback()
    def everywhere(
        debug: Annotated[
            bool, typer.Option("--debug", help="Print tracebacks, and log all there is.")
        ] = False,
        log_level: Annotated[
            LogLevel | None, typer.Option(help="The least level that is logged.", envvar=_LEVEL_VARIABLE)
        ] = None,
        log_format: Annotated[
            LogFormat | None,
            typer.Option(help="The form of a log line, Spark's included.", envvar=_FORMAT_VARIABLE),
        ] = None,
        _version: Annotated[
            bool,
            typer.Option(
                "--version", help="Print the version and end.", callback=_print_version, is_eager=True
            ),
        ] = False,
    ) -> None:
        for variable, value in (
            (_DEBUG_VARIABLE, "1" if debug else ""),
            (_LEVEL_VARIABLE, log_level or ""),
            (_FORMAT_VARIABLE, log_format or ""),
        ):
            if value:
                os.environ[variable] = value

    for command in (run, notify, demo, replay, explain, decode, check_config, jars):
        app.command(command.__name__.replace("_", "-"))(_guarded(command))
    alerts = typer.Typer(help="What concerns the delivery of alerts: test.", no_args_is_help=True)
    alerts.command("test")(_guarded(test))
    app.add_typer(alerts, name="alerts")
    passing = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command("bench", context_settings={**passing, "help_option_names": []})(_guarded(bench))
    first = next((argument for argument in _split(arguments)[1] if not argument.startswith("-")), "")
    app.add_typer(_kafka_app(wanted=first == "kafka"), name="kafka")
    app.add_typer(_silence_app(wanted=first == "silence"), name="silence")
    return app


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the options of all commands with their values, and the other arguments."""
    front: list[str] = []
    rest: list[str] = []
    left = list(arguments)
    while left:
        name, has_value, _ = left[0].partition("=")
        words = 1 if has_value else _ANYWHERE.get(name, 1)
        taken, left = left[:words], left[words:]
        (front if name in _ANYWHERE else rest).extend(taken)
    return front, rest


def main() -> None:
    """Run the command line; the entry point of ``groupwatch``."""
    # A shell that completes a line hands it over in a variable.
    given = sys.argv[1:] or os.environ.get("_TYPER_COMPLETE_ARGS", "").split()[1:]
    arguments = [word for part in _split(given) for word in part]
    try:
        application(arguments)(arguments, prog_name="groupwatch")
    except Exception as error:
        # The ``kafka`` commands are defined elsewhere, but their failures end in the same way.
        sys.exit(_tell(error))
