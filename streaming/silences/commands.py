"""``groupwatch silence``: adds, lists and ends silences, over a running job's API or in the topic itself."""

# ruff: noqa: PLC0415 - what a command needs is imported when it runs, as in streaming/cli.py

import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import quote

import typer

if TYPE_CHECKING:
    from streaming.silences.desk import ShownSilence, SilenceDesk, SilenceList

_Answer = TypeVar("_Answer")
_TIMEOUT_S = 20.0

_Url = Annotated[str | None, typer.Option(help="Ask this running groupwatch: http://host:port")]
_Config = Annotated[
    Path | None,
    typer.Option(
        exists=True, dir_okay=False, readable=True, help="Use the topic named in it; no job is needed."
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

silence_app = typer.Typer(
    help="Keep receivers from being told for a while: add, list, expire.", no_args_is_help=True
)


class SilenceError(Exception):
    """A command failed; the message is for the user."""


@silence_app.command("add")
def add(
    *,
    group: Annotated[list[str] | None, typer.Option(help="Pattern for whole names; repeatable.")] = None,
    alert: Annotated[list[str] | None, typer.Option(help="Name of an alert; repeatable.")] = None,
    cluster: Annotated[list[str] | None, typer.Option(help="Name of a cluster; repeatable.")] = None,
    alert_id: Annotated[
        str, typer.Option(help="Acknowledge this one alert; without --end until it is resolved.")
    ] = "",
    start: Annotated[str, typer.Option(help="A time, or a span from now; else at once.")] = "",
    end: Annotated[
        str, typer.Option(help="A span from the start (2h) or a time (2026-11-21T03:00, UTC).")
    ] = "",
    author: Annotated[str, typer.Option(help="Who silences; else your login name.")] = "",
    comment: Annotated[str, typer.Option(help="Why.")] = "",
    url: _Url = None,
    config: _Config = None,
    as_json: _Json = False,
) -> None:
    """Add a silence and print its id."""
    request: dict[str, Any] = {
        "groups": group or [],
        "alerts": alert or [],
        "clusters": cluster or [],
        "alert_id": alert_id,
        "author": author or getpass.getuser(),
        "comment": comment,
    }
    request |= {key: value for key, value in (("start", start), ("end", end)) if value}
    from streaming.silences.desk import ShownSilence

    if url is not None and config is None:
        _print(_ask("POST", url, "", ShownSilence, json=request), as_json=as_json)
        return
    with _desk(url, config) as desk:
        _print(desk.add(request), as_json=as_json)


@silence_app.command("list")
def list_(
    *,
    state: Annotated[str, typer.Option(help="pending, active, expired or all.")] = "",
    url: _Url = None,
    config: _Config = None,
    as_json: _Json = False,
) -> None:
    """Print the silences that hold now or later; with --state all those that ended lately, too."""
    from streaming.silences.desk import SilenceList

    if state not in ("", "pending", "active", "expired", "all"):
        raise typer.BadParameter("must be pending, active, expired or all", param_hint="--state")
    if url is not None and config is None:
        found = _ask("GET", url, "", SilenceList)
    else:
        with _desk(url, config) as desk:
            found = desk.silences()
    _print_list(found, state, as_json=as_json)


@silence_app.command("expire")
def expire(
    silence_id: Annotated[str, typer.Argument(help="The silence's id.")],
    *,
    url: _Url = None,
    config: _Config = None,
    as_json: _Json = False,
) -> None:
    """End a silence now; what still fires is sent."""
    from streaming.silences.desk import ShownSilence

    if url is not None and config is None:
        _print(_ask("DELETE", url, f"/{quote(silence_id, safe='')}", ShownSilence), as_json=as_json)
        return
    with _desk(url, config) as desk:
        _print(desk.expire(silence_id), as_json=as_json)


@contextmanager
def _desk(url: str | None, config: Path | None) -> "Iterator[SilenceDesk]":
    """Give a desk on the topics themselves, which were read."""
    if config is None or url is not None:
        raise typer.BadParameter("give either --config FILE or --url http://host:port")
    from alerts.delivery import LiveQuiet
    from streaming.config import ConfigError, load_config
    from streaming.silences.desk import SilenceDesk
    from streaming.silences.following import Follower
    from streaming.silences.topic import topics_of

    try:
        loaded = load_config(config)
    except ConfigError as error:
        raise SilenceError(f"{config} cannot be used:\n{error}") from error
    follower = Follower(topics_of(loaded), LiveQuiet())
    failures = follower.read_once()
    if len(failures) == len(follower.topics):
        raise SilenceError("; ".join(failures))
    for one in failures:
        typer.echo(f"groupwatch: {one}", err=True)
    yield SilenceDesk(follower, clusters=[one.name for one in loaded.clusters])


def _ask(method: str, url: str, path: str, answer: type[_Answer], json: object = None) -> _Answer:
    """Ask a running groupwatch.

    Raises:
        SilenceError: it does not answer, or refuses.
    """
    import msgspec

    from streaming.asking import TROUBLE, JobAddress
    from streaming.asking import ask as ask_job

    job = JobAddress(url)
    try:
        told = ask_job(job, f"/api/v1/silences{path}", timeout_s=_TIMEOUT_S, method=method, json=json)
    except TROUBLE as error:
        raise SilenceError(
            f"no groupwatch answers at {job.shown}: {error or type(error).__name__}"
        ) from error
    try:
        if told.is_success:
            return msgspec.json.decode(told.content, type=answer)
        sentence = str(msgspec.json.decode(told.content, type=dict[str, Any])["error"])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError):
        raise SilenceError(f"the server at {job.shown} is not groupwatch (HTTP {told.status_code})") from None
    raise SilenceError(sentence)


def _print(one: "ShownSilence", *, as_json: bool) -> None:
    import msgspec

    sys.stdout.write((msgspec.json.encode(one).decode() if as_json else _line(one)) + "\n")


def _print_list(found: "SilenceList", state: str, *, as_json: bool) -> None:
    import msgspec

    wanted = ("pending", "active") if state == "" else (state,)
    chosen = [one for one in found.silences if state == "all" or one.state in wanted]
    if as_json:
        sys.stdout.write(msgspec.json.encode(chosen).decode() + "\n")
        return
    for one in chosen:
        sys.stdout.write(_line(one) + "\n")
    if found.refused:
        typer.echo(
            f"groupwatch: {sum(found.refused.values())} records of the topic are no silences", err=True
        )


def _line(one: "ShownSilence") -> str:
    from datetime import UTC, datetime

    from alerts.alert import printable

    def time_of(at_ms: int) -> str:
        return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M UTC")

    until = "its alert is resolved" if one.ends_at_ms is None else time_of(one.ends_at_ms)
    kinds = (
        ("group", one.groups),
        ("alert", one.alerts),
        ("cluster", one.clusters),
        ("alert id", (one.alert_id,)),
    )
    what = ", ".join(f"{kind} {' | '.join(names)}" for kind, names in kinds if any(names))
    why = f": {one.comment}" if one.comment else ""
    return printable(
        f"{one.id}  {one.state}, from {time_of(one.starts_at_ms)} until {until}  {what}  ({one.author}{why})"
    )
