"""The metrics of groups as lines, each rendered when it changes and kept until then.

A group's lines are dropped with the group: what is kept is what the last scrape has shown.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from prometheus_client.utils import floatToGoString

from alerts.metrics import metrics
from alerts.metrics.exposition import CLUSTER, RenderedFamily
from coordinator_model.kafka import GroupState

_S = GroupState
STATES: Mapping[str, tuple[GroupState, ...]] = {
    "classic": (_S.EMPTY, _S.PREPARING_REBALANCE, _S.COMPLETING_REBALANCE, _S.STABLE, _S.DEAD),
    "consumer": (_S.EMPTY, _S.ASSIGNING, _S.RECONCILING, _S.STABLE, _S.DEAD),
    "share": (_S.EMPTY, _S.STABLE, _S.DEAD),
    "streams": (_S.EMPTY, _S.NOT_READY, _S.ASSIGNING, _S.RECONCILING, _S.STABLE, _S.DEAD),
}
"""Group type → its states."""


class GroupSample(NamedTuple):
    """The values of one group that the metrics show; unknown times and numbers are -1."""

    cluster: str
    group: str
    group_type: str
    state: GroupState
    state_since_ms: int
    members: int
    generation: int
    rebalances: Mapping[str, int]
    lags: Mapping[str, tuple[int, float]]
    """Topic → (records, seconds); topics with unknown lag are left out."""
    partition_lags: Mapping[tuple[str, int], int] = {}
    """(Topic, partition) → records, if these are wanted."""


_LAGS = GroupSample._fields.index("lags")
"""The fields from here on change with each answer about end offsets, those before with a report."""
_OF_REPORTS = (
    metrics.GROUP_STATE,
    metrics.GROUP_MEMBERS,
    metrics.GROUP_GENERATION,
    metrics.GROUP_STATE_CHANGED,
    metrics.GROUP_REBALANCES,
)
_OF_LAGS = (metrics.GROUP_LAG, metrics.GROUP_LAG_SECONDS, metrics.GROUP_PARTITION_LAG)
GROUP_METRICS = (*_OF_REPORTS, *_OF_LAGS, metrics.GROUP_STATE_SECONDS)
_PARTITION = f"{{{metrics.GROUP_PARTITION_LAG.labels.index('partition')}}}"
"""Where the number of the partition stands in a line that is not formatted yet."""
_AS_IT_IS = 1_000_000
"""Larger numbers are written with an exponent."""
_Parts = tuple[bytes, ...]


class _Kept(NamedTuple):
    """The lines of one group: of a metric each."""

    sample: GroupSample
    reported: _Parts
    lagging: _Parts
    age: str
    """The line of its age without the number, which each scrape has anew; "": unknown."""


class GroupLines:
    """Renders the metrics of groups."""

    def __init__(self, cluster_label: str = CLUSTER) -> None:
        self._heads = {one: _head(one, cluster_label) for one in GROUP_METRICS}
        self._kept: dict[tuple[str, str], _Kept] = {}

    def families(self, samples: Iterable[GroupSample], now_ms: int) -> Iterator[RenderedFamily]:
        """Yield the metrics of these groups; those of others are forgotten."""
        before = self._kept
        kept = {(one.cluster, one.group): self._lines(one, before) for one in samples}
        self._kept = kept
        for place, metric in enumerate(_OF_REPORTS):
            yield RenderedFamily(metric, b"".join([one.reported[place] for one in kept.values()]))
        for place, metric in enumerate(_OF_LAGS):
            yield RenderedFamily(metric, b"".join([one.lagging[place] for one in kept.values()]))
        ages = [
            f"{one.age}{_number(max(0, now_ms - one.sample.state_since_ms) / 1000)}\n"
            for one in kept.values()
            if one.age
        ]
        yield RenderedFamily(metrics.GROUP_STATE_SECONDS, "".join(ages).encode())

    def _lines(self, sample: GroupSample, before: Mapping[tuple[str, str], _Kept]) -> _Kept:
        known = before.get((sample.cluster, sample.group))
        if known is None or known.sample[:_LAGS] != sample[:_LAGS]:
            labels = _escaped(sample.cluster), _escaped(sample.group)
            age = self._heads[metrics.GROUP_STATE_SECONDS].format(*labels)
            return _Kept(
                sample,
                self._reported(sample, labels),
                self._lagging(sample, labels),
                age if sample.state_since_ms >= 0 else "",
            )
        if known.sample[_LAGS:] == sample[_LAGS:]:
            return known
        labels = _escaped(sample.cluster), _escaped(sample.group)
        return known._replace(sample=sample, lagging=self._lagging(sample, labels))

    def _reported(self, sample: GroupSample, labels: tuple[str, str]) -> _Parts:
        state, members, generation, changed, rebalances = (self._heads[one] for one in _OF_REPORTS)
        # A state that the group's type should not have is shown anyway: an odd series beats a hidden state.
        states = dict.fromkeys((*STATES.get(sample.group_type, ()), sample.state))
        group_type = _escaped(sample.group_type)
        causes = sample.rebalances.items()
        lines = (
            [state.format(*labels, group_type, one) + str(float(one is sample.state)) for one in states],
            [members.format(*labels) + _number(sample.members)],
            [generation.format(*labels) + _number(sample.generation)] if sample.generation >= 0 else [],
            [changed.format(*labels) + _number(sample.state_since_ms / 1000)]
            if sample.state_since_ms >= 0
            else [],
            [rebalances.format(*labels, _escaped(cause)) + _number(number) for cause, number in causes],
        )
        return tuple(map(_joined, lines))

    def _lagging(self, sample: GroupSample, labels: tuple[str, str]) -> _Parts:
        records, seconds, partition = (self._heads[one] for one in _OF_LAGS)
        topics = [((*labels, _escaped(topic)), lag) for topic, lag in sample.lags.items()]
        before, after = partition.split(_PARTITION)
        places = {topic: (*labels, _escaped(topic)) for topic, _ in sample.partition_lags}
        around = {topic: (before.format(*one), after.format(*one)) for topic, one in places.items()}
        lines = (
            [records.format(*place) + _number(lag[0]) for place, lag in topics],
            [seconds.format(*place) + _number(lag[1]) for place, lag in topics],
            [
                f"{around[topic][0]}{one}{around[topic][1]}{_number(lag)}"
                for (topic, one), lag in sample.partition_lags.items()
            ],
        )
        return tuple(map(_joined, lines))


def _head(metric: metrics.Metric, cluster_label: str) -> str:
    """Return a line without its number, to be formatted with the values of the metric's labels."""
    names = [cluster_label if one == CLUSTER else one for one in metric.labels]
    labels = ",".join(f'{name}="{{{place}}}"' for name, place in sorted(zip(names, count(), strict=False)))
    suffix = "_total" if metric.kind == "counter" else ""
    return f"{metric.name}{suffix}{{{{{labels}}}}} "


def _joined(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode() if lines else b""


@lru_cache(maxsize=20_000)
def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    if type(value) is int and 0 <= value < _AS_IT_IS:
        return f"{value}.0"
    number: str = floatToGoString(value)  # type: ignore[no-untyped-call]
    return number
