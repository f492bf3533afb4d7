"""Prometheus' view of a picture."""

import re
from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.utils import floatToGoString

from alerts.metrics.exporter import ClusterSample, Firing, SnapshotCollector
from alerts.metrics.exposition import render
from alerts.metrics.group_lines import STATES, GroupSample
from alerts.metrics.health_metrics import HealthCollector, HealthSample
from coordinator_model.kafka.states import GroupState

NOW_MS = 1_700_000_100_000


class Still:
    """A picture that does not move."""

    def __init__(self) -> None:
        self.groups: list[GroupSample] = []
        self.alerts: list[Firing] = []
        self.clusters: list[ClusterSample] = []

    def group_samples(self, limit: int) -> list[GroupSample]:
        """Return the first groups."""
        return self.groups[:limit]

    def firing(self, limit: int) -> list[Firing]:
        """Return the first alerts."""
        return self.alerts[:limit]

    def cluster_samples(self) -> list[ClusterSample]:
        """Return the clusters."""
        return self.clusters


def sample(
    group: str = "g",
    *,
    group_type: str = "classic",
    state: GroupState = GroupState.STABLE,
    lags: Mapping[str, tuple[int, float]] | None = None,
    since_ms: int = NOW_MS - 90_500,
    rebalances: Mapping[str, int] | None = None,
) -> GroupSample:
    return GroupSample("eu", group, group_type, state, since_ms, 3, 7, rebalances or {}, lags or {})


@pytest.fixture
def picture() -> Still:
    return Still()


def scrape(picture: Still, groups_max: int = 10) -> list[str]:
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(picture, groups_max=groups_max, clock_ms=lambda: NOW_MS))
    return lines_of(registry)


def lines_of(registry: CollectorRegistry, cluster_label: str = "cluster") -> list[str]:
    text = render(registry, cluster_label=cluster_label)[0].decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_names_and_labels_are_the_contracts(picture: Still) -> None:
    """Dashboards depend on each of these lines."""
    picture.groups = [
        sample(rebalances={"member_left": 4}, lags={"orders": (12, 3.5)}, state=GroupState.EMPTY)
    ]
    picture.alerts = [
        Firing("eu", "g", "RebalanceStorm", "critical", "false"),
        Firing("eu", "", "SourceSilent", "warning", "true"),
    ]
    picture.clusters = [
        ClusterSample(
            cluster="eu",
            groups=1,
            events={("offsets", "commit"): 5},
            undecodable={("events", "truncated"): 2},
            divergences={"log_line_missing": 1},
            newest_ms={"offsets": NOW_MS - 2_000, "never": -1},
            answers={"agreeing": 7, "differing": 1},
            agreement=0.875,
            probe_requests={"ListGroups": 6},
        )
    ]
    group = 'cluster="eu",group="g"'
    newest, changed = (floatToGoString(NOW_MS / 1000 - ago_s) for ago_s in (2, 90.5))  # type: ignore[no-untyped-call]
    assert sorted(scrape(picture)) == sorted(
        [
            f'groupwatch_group_state{{{group},group_type="classic",state="Empty"}} 1.0',
            f'groupwatch_group_state{{{group},group_type="classic",state="PreparingRebalance"}} 0.0',
            f'groupwatch_group_state{{{group},group_type="classic",state="CompletingRebalance"}} 0.0',
            f'groupwatch_group_state{{{group},group_type="classic",state="Stable"}} 0.0',
            f'groupwatch_group_state{{{group},group_type="classic",state="Dead"}} 0.0',
            f"groupwatch_group_members{{{group}}} 3.0",
            f"groupwatch_group_generation{{{group}}} 7.0",
            f"groupwatch_group_state_changed_timestamp_seconds{{{group}}} {changed}",
            f"groupwatch_group_state_seconds{{{group}}} 90.5",
            f'groupwatch_group_rebalances_total{{cause="member_left",{group}}} 4.0',
            f'groupwatch_group_lag{{{group},topic="orders"}} 12.0',
            f'groupwatch_group_lag_seconds{{{group},topic="orders"}} 3.5',
            'groupwatch_alerts_firing{alertname="RebalanceStorm",'
            f'{group},severity="critical",silenced="false"}} 1.0',
            'groupwatch_alerts_firing{alertname="SourceSilent",'
            'cluster="eu",group="",severity="warning",silenced="true"} 1.0',
            'groupwatch_groups{cluster="eu"} 1.0',
            'groupwatch_events_total{cluster="eu",kind="commit",source="offsets"} 5.0',
            'groupwatch_undecodable_total{cluster="eu",reason="truncated",source="events"} 2.0',
            'groupwatch_divergence_total{cluster="eu",kind="log_line_missing"} 1.0',
            'groupwatch_quarantined_groups{cluster="eu"} 0.0',
            'groupwatch_answers_total{cluster="eu",outcome="agreeing"} 7.0',
            'groupwatch_answers_total{cluster="eu",outcome="differing"} 1.0',
            'groupwatch_agreement_ratio{cluster="eu"} 0.875',
            'groupwatch_probe_requests_total{cluster="eu",request="ListGroups"} 6.0',
            f'groupwatch_source_newest_timestamp_seconds{{cluster="eu",source="offsets"}} {newest}',
        ]
    )


@pytest.mark.parametrize("group_type", sorted(STATES))
def test_exactly_one_state_is_1(picture: Still, group_type: str) -> None:
    """For each type the states it can have, and one of them true."""
    for state in STATES[group_type]:
        picture.groups = [sample(group_type=group_type, state=state)]
        lines = [line for line in scrape(picture) if line.startswith("groupwatch_group_state{")]
        assert len(lines) == len(STATES[group_type])
        assert [line for line in lines if line.endswith(" 1.0")] == [
            line for line in lines if f'state="{state}"' in line
        ]


def test_a_state_that_the_type_should_not_have_is_shown(picture: Still) -> None:
    """Better odd than hidden."""
    picture.groups = [sample(group_type="share", state=GroupState.RECONCILING)]
    assert any('state="Reconciling"} 1.0' in line for line in scrape(picture))


def test_a_vanished_group_leaves_with_the_next_scrape(picture: Still) -> None:
    """What is kept between scrapes are the lines of groups that were shown, no group."""
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(picture, groups_max=10, clock_ms=lambda: NOW_MS))
    picture.groups = [sample("a"), sample("b")]
    assert any('group="b"' in line for line in lines_of(registry))
    picture.groups = [sample("a")]
    assert not any('group="b"' in line for line in lines_of(registry))


def test_what_is_unknown_has_no_series(picture: Still) -> None:
    """No NaN, no -1, no frozen number."""
    picture.groups = [sample(since_ms=-1)._replace(generation=-1)]
    text = "\n".join(scrape(picture))
    assert "state_seconds" not in text
    assert "generation" not in text
    assert "lag" not in text
    assert "NaN" not in text


def test_the_number_of_groups_is_bounded(picture: Still) -> None:
    """65,000 groups do not make 65,000 sets of series."""
    picture.groups = [sample(str(n)) for n in range(20)]
    assert sum("groupwatch_group_members" in line for line in scrape(picture, groups_max=5)) == 5


def test_a_brokers_clock_ahead_of_ours_makes_no_negative_age(picture: Still) -> None:
    """Skew shows as 0."""
    picture.groups = [sample(since_ms=NOW_MS + 5_000)]
    assert any(line.endswith('state_seconds{cluster="eu",group="g"} 0.0') for line in scrape(picture))


def test_partitions_have_lags_of_their_own_if_wanted(picture: Still) -> None:
    """Beside the topic's."""
    picture.groups = [sample()._replace(partition_lags={("orders", 3): 12})]
    line = 'groupwatch_group_partition_lag{cluster="eu",group="g",partition="3",topic="orders"} 12.0'
    assert line in scrape(picture)


def test_the_label_of_the_cluster_can_have_another_name(picture: Still) -> None:
    """For a Prometheus that needs ``cluster`` itself; nothing else is changed."""
    picture.groups = [sample()]
    before = scrape(picture)
    registry = CollectorRegistry()
    registry.register(
        SnapshotCollector(picture, groups_max=10, clock_ms=lambda: NOW_MS, cluster_label="kafka")
    )
    after = lines_of(registry, "kafka")
    assert [_in_parts(line.replace('cluster="eu"', 'kafka="eu"')) for line in before] == [
        _in_parts(line) for line in after
    ]


def _in_parts(line: str) -> list[str]:
    """Return a line's parts without the order of its labels."""
    return sorted(re.split(r"[{},]", line))


def test_the_health_of_each_cluster_is_shown() -> None:
    """Ready, how far behind each source is read, and when the last batch ended; what is unknown is absent."""
    registry = CollectorRegistry()
    registry.register(
        HealthCollector(
            lambda: [
                HealthSample("eu", True, {"offsets": 1.5}, 1_700_000_000.25),
                HealthSample("us", False, {}, None),
            ]
        )
    )
    assert lines_of(registry) == [
        'groupwatch_ready{cluster="eu"} 1.0',
        'groupwatch_ready{cluster="us"} 0.0',
        'groupwatch_source_delay_seconds{cluster="eu",source="offsets"} 1.5',
        'groupwatch_last_batch_timestamp_seconds{cluster="eu"} 1.70000000025e+09',
    ]


def test_odd_group_names_are_escaped(picture: Still) -> None:
    """Quotes, backslashes and newlines do not break the exposition."""
    picture.groups = [sample('a"b\\c\nd')]
    assert any('group="a\\"b\\\\c\\nd"' in line for line in scrape(picture))
