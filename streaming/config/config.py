"""The configuration file: its options, their meaning, and all mistakes in it at once.

Frozen pydantic models of the file.  Durations are in milliseconds, in fields that end in ``_ms`` (the key in
the file is the name without it).  ``settings_json`` is the part that executors get through the control topic.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, ValidationError, model_validator

from streaming.config.evidence import EvidenceConfig
from streaming.config.history import HistoryConfig
from streaming.config.mistakes import mistakes_in
from streaming.config.owners import read_owners
from streaming.config.receivers import OwnerConfig, ReceiverConfig, RouteConfig
from streaming.config.rules import Rules, rules_settings
from streaming.config.server import HttpConfig, NotifyHttpConfig
from streaming.config.silences import MaintenanceConfig, SilenceConfig, unknown_clusters
from streaming.config.source import Mistake, parse
from streaming.config.types import (
    Addresses,
    DurationMs,
    Options,
    Patterns,
    Property,
    Timezone,
    Topic,
    shown,
)

"""HTTP clients, and most receivers, refuse longer addresses."""
_Name = Annotated[str, Field(min_length=1, max_length=200)]


class ConfigError(Exception):
    """The configuration cannot be used; ``mistakes`` lists every mistake as (path, message)."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        super().__init__("\n".join(f"{path}: {message}" if path else message for path, message in mistakes))
        self.mistakes = mistakes


class OffsetsSource(Options):
    """The topic with commits and group records; it may be a mirrored copy."""

    topic: Topic = "__consumer_offsets"
    enabled: bool = True


class EventsSource(Options):
    """The topic with the brokers' log lines; ``timezone`` applies to lines without one."""

    topic: Topic = "groupwatch-events"
    enabled: bool = True
    timezone: Timezone = "UTC"


class GroupFilter(Options):
    """The groups to watch: patterns for the whole name, ``deny`` wins."""

    allow: Patterns = Field(default_factory=lambda: [".*"])
    deny: Patterns = Field(default_factory=list)


class ProbeConfig(Options):
    """How brokers are asked about groups, to verify the mirror and correct it."""

    enabled: bool = True
    groups_per_second: float = Field(default=10.0, ge=0.01, le=1_000)
    """Most groups described per second and cluster; a settled group at most every 30 s."""


class ClusterConfig(Options):
    """One Kafka cluster to watch."""

    name: _Name
    bootstrap_servers: Annotated[Addresses, Field(min_length=1)]
    client: dict[str, Property] = Field(default_factory=dict)
    offsets: OffsetsSource = Field(default_factory=OffsetsSource)
    events: EventsSource = Field(default_factory=EventsSource)
    groups: GroupFilter = Field(default_factory=GroupFilter)
    forget_after_ms: DurationMs = Field(default=604_800_000, alias="forget_after")
    probe: ProbeConfig = Field(default_factory=ProbeConfig)
    evidence: EvidenceConfig = Field(default_factory=EvidenceConfig)

    @model_validator(mode="after")
    def _sees_something(self) -> "ClusterConfig":
        if not self.offsets.enabled and not self.events.enabled:
            raise ValueError("offsets and events are both disabled, so there is nothing to watch")
        if self.evidence.enabled and not (self.events.enabled and self.probe.enabled):
            raise ValueError("evidence needs events and probe, and one of them is disabled")
        return self


class OutputConfig(Options):
    """The topics we write; ``bootstrap_servers: null`` means on each watched cluster itself."""

    transitions_topic: Topic = "groupwatch-transitions"
    alerts_topic: Topic = "groupwatch-alerts"
    control_topic: Topic = "groupwatch-control"
    evidence_topic: Topic = "groupwatch-evidence"
    silences_topic: Topic = "groupwatch-silences"
    """Silences that were added at run time; whoever may write it can keep people from being told."""
    bootstrap_servers: Addresses | None = None
    client: dict[str, Property] = Field(default_factory=dict)


def _trigger(value: int) -> int:
    if value < 100:
        raise ValueError("must be at least 100ms")
    return value


class Config(Options):
    """The whole file."""

    clusters: Annotated[list[ClusterConfig], Field(min_length=1)]
    checkpoint: Annotated[str, Field(min_length=1)] = "./checkpoint"
    checkpoint_is_shared: bool = False
    """A statement: a checkpoint on a local path is one shared folder for the driver and every executor."""
    trigger_interval_ms: Annotated[DurationMs, AfterValidator(_trigger)] = Field(
        default=1_000, alias="trigger_interval"
    )
    spark: dict[str, Property] = Field(default_factory=dict)
    output: OutputConfig = Field(default_factory=OutputConfig)
    http: HttpConfig = Field(default_factory=HttpConfig)
    notify_http: NotifyHttpConfig = Field(default_factory=NotifyHttpConfig)
    state_dir: str = ""
    """Local folder for what a process must remember without Kafka; "": beside a local checkpoint."""
    history: HistoryConfig = Field(default_factory=HistoryConfig)
    rules: Rules = Field(default_factory=Rules)  # type: ignore[valid-type]
    runbook_base: str = ""
    """Where the runbooks are published; the alert's name and ".md" follow.  "": at ``http.external_url``."""
    receivers: list[ReceiverConfig] = Field(default_factory=list)
    owners: list[OwnerConfig] = Field(default_factory=list)
    """Who owns which groups: a label of their alerts, and what routes can match."""
    owners_file: str = ""
    """A file with more owners, behind those above; when it changes, the configuration is read again."""
    routes: list[RouteConfig] = Field(default_factory=list)
    """Without any, every receiver gets every alert."""
    silences: list[SilenceConfig] = Field(default_factory=list)
    """Receivers get no alerts until these end; the topic, the API and the page show everything."""
    maintenance: list[MaintenanceConfig] = Field(default_factory=list)
    """The same, at fixed times of certain days."""

    @model_validator(mode="before")
    @classmethod
    def _with_owners_of_file(cls, values: Any) -> Any:
        """Append the file's owners to the configuration's own, so that both are one list."""
        path = values.get("owners_file") if isinstance(values, dict) else None
        own = values.get("owners") or [] if path else None
        if not isinstance(path, str) or not isinstance(own, list):
            return values
        told = [one.model_dump() for one in read_owners(path)]
        return {**values, "owners": [*own, *told]}

    @property
    def runbooks_url(self) -> str:
        """Where people find the runbooks: as configured, else at this job itself; "" if nobody said where."""
        own = self.http.external_url.rstrip("/")
        return self.runbook_base or (f"{own}/runbooks" if own else "")

    def rule(self, name: str) -> dict[str, Any]:
        """Return one rule's options as plain values, durations in ``…_ms``."""
        rules: BaseModel = self.rules
        found: dict[str, Any] = getattr(rules, name).model_dump(mode="json", exclude_none=True)
        return found


def load_config(path: str | FilePath, environment: Mapping[str, str] | None = None) -> Config:
    """Read, check and return the configuration in ``path``.

    Raises:
        ConfigError: with every mistake in the file.
    """
    try:
        text = FilePath(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError([Mistake("", f"cannot read {path}: {error.strerror or error}")]) from None
    except UnicodeDecodeError as error:
        raise ConfigError([Mistake("", f"{path} is not UTF-8 (byte {error.start})")]) from None
    return parse_config(text, environment)


def parse_config(text: str, environment: Mapping[str, str] | None = None) -> Config:
    """Check YAML ``text`` and return the configuration in it.

    Raises:
        ConfigError: with every mistake in the text.
    """
    source = parse(text, environment)
    if source.values is None and not source.mistakes:
        source.mistakes.append(Mistake("", "the file is empty"))
    if not isinstance(source.values, dict):
        raise ConfigError(
            [source.redacted(one) for one in source.mistakes]
            or [Mistake("", "expected keys and values, such as 'clusters:'")]
        )
    config = None
    mistakes = list(source.mistakes)
    try:
        config = Config.model_validate(source.values)
    except ValidationError as error:
        mistakes.extend(mistakes_in(error, source, Config))
    mistakes.extend(_cross_mistakes(source.values))
    if mistakes or config is None:
        raise ConfigError(list(dict.fromkeys(source.redacted(source.placed(one)) for one in mistakes)))
    return config


def notes(config: Config) -> list[str]:
    """Return settings that are legal but perhaps not intended."""
    found = [f"http: {config.http.open_to}"] if config.http.open_to else []
    found += [f"notify_http: {config.notify_http.open_to}"] if config.notify_http.open_to else []
    if not config.receivers:
        found.append("receivers: none, so alerts are only in the topic, the API and /metrics")
    return found


def settings_json(config: Config, cluster: ClusterConfig) -> bytes:
    """Return the settings for the executors as canonical JSON (equal settings give equal bytes)."""
    settings = {
        "rules": rules_settings(config.rules),
        "groups": {"allow": cluster.groups.allow, "deny": cluster.groups.deny},
        "forget_after_ms": cluster.forget_after_ms,
        "offsets_enabled": cluster.offsets.enabled,
        "events_enabled": cluster.events.enabled,
        "runbook_base": config.runbooks_url,
    }
    return json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _cross_mistakes(values: dict[str, Any]) -> Iterator[Mistake]:
    """Yield mistakes that only two places together show; raw values, so that other mistakes hide none."""
    for key in ("clusters", "receivers"):
        yield from _repeated_names(key, _entries(values, key))
    known = _names(values, "receivers")
    for position, route in _entries(values, "routes"):
        wanted = route.get("receivers")
        for name in wanted if isinstance(wanted, list) else [wanted]:
            if isinstance(name, str) and name not in known:
                yield Mistake(f"routes[{position}].receivers", f"there is no receiver {shown(name)}")
    clusters = _names(values, "clusters")
    for key in ("owners", "silences", "maintenance"):
        yield from unknown_clusters(key, _entries(values, key), clusters)
    yield from _shared_topics(values.get("output"))


def _entries(values: dict[str, Any], key: str) -> list[tuple[int, dict[str, Any]]]:
    entries = values.get(key)
    return [(n, e) for n, e in enumerate(entries) if isinstance(e, dict)] if isinstance(entries, list) else []


def _names(values: dict[str, Any], key: str) -> set[str]:
    names = (entry.get("name") for _, entry in _entries(values, key))
    return {name for name in names if isinstance(name, str)}


def _repeated_names(key: str, entries: list[tuple[int, dict[str, Any]]]) -> Iterator[Mistake]:
    seen: Counter[str] = Counter()
    for position, entry in entries:
        name = entry.get("name")
        if isinstance(name, str):
            seen[name] += 1
            if seen[name] > 1:
                yield Mistake(f"{key}[{position}].name", f"another entry of {key} is named {name!r}")


def _shared_topics(output: Any) -> Iterator[Mistake]:
    topics = OutputConfig.model_construct().model_dump(
        include={"transitions_topic", "alerts_topic", "control_topic", "evidence_topic", "silences_topic"}
    )
    if isinstance(output, dict):
        topics |= {key: output[key] for key in topics if isinstance(output.get(key), str)}
    first: dict[str, str] = {}
    for key, topic in topics.items():
        if topic in first:
            yield Mistake(f"output.{key}", f"{topic!r} is also the {first[topic]}; each needs its own")
        first.setdefault(topic, key)
