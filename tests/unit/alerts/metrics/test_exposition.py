"""Lines that we render ourselves say what prometheus_client would have said, in both formats."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.registry import Collector

from alerts.metrics import metrics
from alerts.metrics.exporter import SnapshotCollector
from alerts.metrics.exposition import render
from alerts.metrics.group_lines import GROUP_METRICS, STATES, GroupSample
from coordinator_model.kafka.states import GroupState

NOW_MS = 1_700_000_100_000
OPEN = "application/openmetrics-text; version=1.0.0"
FORMATS: dict[str, tuple[Callable[[Collector], bytes], Callable[[str], Any]]] = {
    "": (generate_latest, parse_text),
    OPEN: (openmetrics.generate_latest, parse_openmetrics),
}


class Still:
    """Groups at one moment, and nothing else."""

    def __init__(self, groups: list[GroupSample]) -> None:
        self.groups = groups

    def group_samples(self, limit: int) -> list[GroupSample]:
        """Return the first groups."""
        return self.groups[:limit]

    def firing(self, limit: int) -> list[Any]:
        """Return no alerts."""
        return []

    def cluster_samples(self) -> list[Any]:
        """Return no clusters."""
        return []


class Objects(Collector):
    """The metrics of groups as objects of prometheus_client: what the lines are held against."""

    def __init__(self, groups: list[GroupSample], cluster_label: str) -> None:
        self._groups = groups
        self._label = cluster_label

    def collect(self) -> Iterator[Metric]:
        """Yield a family for each metric."""
        kinds = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily}
        families = {}
        for one in GROUP_METRICS:
            labels = [self._label if name == "cluster" else name for name in one.labels]
            families[one] = kinds[one.kind](one.name, one.help, labels=labels)
        for group in self._groups:
            for metric, values, number in series(group):
                families[metric].add_metric(values, number)
        yield from families.values()


def series(group: GroupSample) -> Iterator[tuple[metrics.Metric, list[str], float]]:
    """Yield (metric, values of its labels, number) of one group."""
    here = [group.cluster, group.group]
    for state in dict.fromkeys((*STATES.get(group.group_type, ()), group.state)):
        yield metrics.GROUP_STATE, [*here, group.group_type, str(state)], float(state is group.state)
    yield metrics.GROUP_MEMBERS, here, group.members
    if group.generation >= 0:
        yield metrics.GROUP_GENERATION, here, group.generation
    if group.state_since_ms >= 0:
        yield metrics.GROUP_STATE_CHANGED, here, group.state_since_ms / 1000
        yield metrics.GROUP_STATE_SECONDS, here, max(0, NOW_MS - group.state_since_ms) / 1000
    for cause, count in group.rebalances.items():
        yield metrics.GROUP_REBALANCES, [*here, cause], count
    for topic, (records, seconds) in group.lags.items():
        yield metrics.GROUP_LAG, [*here, topic], records
        yield metrics.GROUP_LAG_SECONDS, [*here, topic], seconds
    for (topic, partition), records in group.partition_lags.items():
        yield metrics.GROUP_PARTITION_LAG, [*here, topic, str(partition)], records


ODD = st.sampled_from('ab"\\\n{}, =\r\t\u2028é')
NAMES = st.text(st.one_of(ODD, st.characters(codec="utf-8")), max_size=9)
NUMBERS = st.one_of(st.integers(0, 9), st.integers(0, 2**53), st.sampled_from((999_999, 1_000_000, 10**9)))
GROUPS = st.builds(
    GroupSample,
    cluster=NAMES,
    group=NAMES,
    group_type=st.sampled_from((*STATES, "odd")),
    state=st.sampled_from(list(GroupState)),
    state_since_ms=st.one_of(st.just(-1), st.integers(0, NOW_MS + 9_000)),
    members=NUMBERS,
    generation=st.one_of(st.just(-1), NUMBERS),
    rebalances=st.dictionaries(NAMES, NUMBERS, max_size=3),
    lags=st.dictionaries(NAMES, st.tuples(NUMBERS, st.floats(0, 1e9)), max_size=3),
    partition_lags=st.dictionaries(st.tuples(NAMES, st.integers(0, 300)), NUMBERS, max_size=3),
)


def _of_one_name(group: GroupSample) -> tuple[str, str]:
    return group.cluster, group.group


@given(
    st.lists(st.lists(GROUPS, max_size=3, unique_by=_of_one_name), min_size=1, max_size=3),
    st.sampled_from(("cluster", "kafka", "zone")),
    st.sampled_from(sorted(FORMATS)),
)
def test_lines_are_those_of_the_client_library(
    scrapes: list[list[GroupSample]], label: str, accept: str
) -> None:
    """Whatever groups are called and however they change between scrapes."""
    picture = Still([])
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(picture, groups_max=10, clock_ms=lambda: NOW_MS, cluster_label=label))
    for groups in scrapes:
        picture.groups = groups
        encode, parse = FORMATS[accept]
        body, media_type = render(registry, accept, label)
        expected = encode(Objects(groups, label))

        assert media_type.startswith(OPEN.partition(";")[0] if accept else "text/plain")
        assert set(expected.split(b"\n")) <= set(body.split(b"\n"))
        found = {one.name: one for one in parse(body.decode()) if one.name in _names(parse, expected)}
        assert list(found.values()) == list(parse(expected.decode()))


def _names(parse: Callable[[str], Any], body: bytes) -> set[str]:
    return {one.name for one in parse(body.decode())}


@pytest.mark.parametrize(
    "change",
    [
        {"lags": {"t": (2, 0.5)}},
        {"lags": {}},
        {"partition_lags": {("t", 1): 4}},
        {"members": 4},
        {"state": GroupState.EMPTY},
        {"rebalances": {"member_left": 3}},
        {"state_since_ms": -1},
    ],
    ids=str,
)
def test_lines_that_are_kept_follow_their_group(change: dict[str, Any]) -> None:
    """A group that has changed since the last scrape is shown as it is now, and then as it was again."""
    group = GroupSample("eu", "g", "classic", GroupState.STABLE, 5, 3, 7, {"member_left": 2}, {"t": (1, 0.5)})
    picture = Still([group])
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(picture, groups_max=10, clock_ms=lambda: NOW_MS))
    for shown in (group, group._replace(**change), group):
        picture.groups = [shown]
        expected = generate_latest(Objects([shown], "cluster"))

        assert set(expected.split(b"\n")) <= set(render(registry)[0].split(b"\n"))


@pytest.mark.parametrize("accept", sorted(FORMATS))
def test_what_the_process_counts_stands_beside_them(accept: str) -> None:
    """One body, which a parser reads as a whole, with every family once."""
    group = GroupSample("eu", "g", "classic", GroupState.STABLE, 5, 3, 7, {"member_left": 2}, {"t": (1, 0.5)})
    registry = CollectorRegistry()
    Counter("ours", "Counted by ourselves.", ["cluster"], registry=registry).labels("eu").inc()
    registry.register(SnapshotCollector(Still([group]), groups_max=10, clock_ms=lambda: NOW_MS))
    body = render(registry, accept)[0].decode()
    names = [one.name for one in FORMATS[accept][1](body)]

    assert len(names) == len(set(names))
    assert {"ours", "groupwatch_group_state", "groupwatch_groups"} <= set(names)
    assert body.endswith("# EOF\n") == bool(accept)
    assert body.count("# EOF") == bool(accept)


def test_others_than_our_server_read_the_same_samples() -> None:
    """The registry can be handed to any exporter of the client library."""
    group = GroupSample("eu", 'g"\\', "share", GroupState.EMPTY, 5, 3, 7, {"member_left": 2}, {"t": (1, 0.5)})
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(Still([group]), groups_max=10, clock_ms=lambda: NOW_MS))

    labels = {"cluster": "eu", "group": 'g"\\', "cause": "member_left"}
    assert registry.get_sample_value("groupwatch_group_rebalances_total", labels) == 2
    assert set(generate_latest(registry).split(b"\n")) == set(render(registry)[0].split(b"\n"))


def test_a_version_that_is_none_gets_plain_text() -> None:
    """A scraper that asks for nonsense is answered all the same."""
    body, media_type = render(CollectorRegistry(), "application/openmetrics-text; version=x")
    assert (body, media_type.partition(";")[0]) == (b"", "text/plain")
