"""groupwatch's silences as Alertmanager's own, so that people see there who silenced what, and why.

An alert that is silenced here is sent to Alertmanager like any other, after a silence that matches it: so it
stays visible there as suppressed, and is not taken for resolved.  A silence of groupwatch becomes one of
Alertmanager with the same patterns where its regular expressions (RE2) have them, else one with the labels of
the alert.  The comment ends with a mark, by which a later process finds what an earlier one left.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from alerts.alert import Alert, AlertStatus, rfc3339
from alerts.delivery.receivers.http_post import Answer, Post, Poster
from alerts.delivery.receivers.receiver import Outcome
from alerts.delivery.silences import FOREVER_MS, PatternError, Quiet, Window, check_pattern
from alerts.rules import ALL_RULES

_MANY = "/api/v2/silences"
_ONE = "/api/v2/silence/"
_AHEAD_MS = 300_000
"""A silence that begins within this time is made now: alerts are sent each minute, not at its beginning."""
_LEASE_MS = 3_600_000
"""A silence without an end (an acknowledged alert) is made for this long, again and again."""
_MARK = re.compile(r"\[groupwatch ([0-9a-f]{16})(-[0-9a-f]{8})?\]$")


class _There(msgspec.Struct, rename="camel"):
    """A silence as Alertmanager lists it."""

    id: str
    ends_at: datetime
    updated_at: datetime
    comment: str = ""

    @property
    def key(self) -> str:
        """The key of one of ours; "" for those of others."""
        mark = _MARK.search(self.comment)
        return mark[1] + (mark[2] or "") if mark else ""

    def ends_ms(self) -> int:
        """Return its end, or that of the world if a person ended it: then it is not made again."""
        is_ended_by_hand = self.updated_at >= self.ends_at
        return FOREVER_MS if is_ended_by_hand else round(self.ends_at.timestamp() * 1000)

    def is_live(self, now_ms: int) -> bool:
        """Say whether it silences now, or will."""
        return self.ends_at.timestamp() * 1000 > now_ms


class Wanted(NamedTuple):
    """A silence that Alertmanager should have."""

    key: str
    matchers: Sequence[Mapping[str, Any]]
    window: Window

    def body(self, now_ms: int) -> bytes:
        """Return it as the API takes it."""
        window = self.window
        said = {
            "matchers": self.matchers,
            "startsAt": rfc3339(max(window.from_ms, now_ms)),
            "endsAt": rfc3339(min(window.until_ms, now_ms + _LEASE_MS) if self.is_lease else window.until_ms),
            "createdBy": window.author or "configuration of groupwatch",
            "comment": f"{window.comment or 'silenced in groupwatch'} [groupwatch {self.key}]",
        }
        return json.dumps(said).encode()

    @property
    def is_lease(self) -> bool:
        """Nobody knows its end."""
        return self.window.until_ms >= FOREVER_MS

    def is_among(self, ours: Iterable[_There], now_ms: int) -> bool:
        """Say whether it is there, and for long enough."""
        needed_ms = min(self.window.until_ms, now_ms + _LEASE_MS // 2) if self.is_lease else now_ms
        return any(one.key == self.key and one.ends_ms() >= needed_ms for one in ours)


def wanted_for(alert: Alert, window: Window) -> Wanted:
    """Return the silence that has Alertmanager heed ``window`` for ``alert``."""
    match, key = window.match, _key(window)
    if match.alert_id or not all(map(_is_portable, match.groups)):
        labels = {"alertname": alert.name, "cluster": alert.cluster, "group": alert.group}
        exact = [_matcher(name, value) for name, value in labels.items()]
        return Wanted(f"{key}-{_hash(labels)[:8]}", exact, window)
    # Only our alerts: an Alertmanager has those of others, which may have a label ``group`` as well.
    matchers = [_is_one_of("alertname", match.alerts or (rule.name for rule in ALL_RULES))]
    if match.clusters:
        matchers.append(_is_one_of("cluster", match.clusters))
    if match.groups:  # as here: a pattern leaves alerts about a whole cluster alone
        matchers.append(_matcher("group", "|".join(f"(?:{one})" for one in match.groups), is_regex=True))
        matchers.append(_matcher("group", "", is_equal=False))
    return Wanted(key, matchers, window)


def _key(window: Window) -> str:
    """Return what tells a window of quiet from others, in every process."""
    match = window.match
    about = [match.groups, match.alerts, match.clusters, match.alert_id]
    return _hash([about, window.until_ms, window.id, window.author, window.comment])[:16]


def _hash(values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def _is_portable(pattern: str) -> bool:
    """Say whether a pattern is one of those that are matched in linear time, as Go's are."""
    try:
        check_pattern(pattern)
    except PatternError:
        return False
    return True


def _matcher(name: str, value: str, *, is_regex: bool = False, is_equal: bool = True) -> dict[str, Any]:
    return {"name": name, "value": value, "isRegex": is_regex, "isEqual": is_equal}


def _is_one_of(name: str, values: Iterable[str]) -> dict[str, Any]:
    return _matcher(name, "|".join(map(re.escape, values)), is_regex=True)


class SilencesThere:
    """Brings the silences of groupwatch to several Alertmanagers.

    What is there is read each time: an Alertmanager may have lost it, or got it from its neighbour.
    """

    def __init__(self, urls: Sequence[str], poster: Poster) -> None:
        """Prepare.

        Args:
            urls: addresses of the Alertmanagers.
            poster: makes the requests.
        """
        self._urls = tuple(urls)
        self._poster = poster
        self._has_some = set(urls)
        """Those that have silences of ours, as far as is known: at first all may, of an earlier process."""
        self.trouble = ""
        """What an Alertmanager refused at the last time; "" if nothing."""

    def bring(self, alerts: Iterable[Alert], quiet: Quiet, now_ms: int) -> dict[str, frozenset[str]]:
        """Make the silences of ``alerts``, and end those that nobody wants any more.

        Returns:
            Address -> ids of the alerts that are silenced here and could not be silenced there.
        """
        self.trouble = ""
        firing = [one for one in alerts if one.status is AlertStatus.FIRING]
        wanted = {
            one.id: [wanted_for(one, window) for window in quiet.windows(now_ms, _AHEAD_MS, one)]
            for one in firing
        }
        by_key = {one.key: one for many in wanted.values() for one in many}
        made = self._make(by_key.values(), self._look(needed=bool(by_key)), now_ms)
        self._end({_key(one) for one in quiet.windows(now_ms, _AHEAD_MS)}, made, now_ms)
        silenced = [one.id for one in firing if quiet.until_ms(one, now_ms) is not None]
        return {
            url: frozenset(
                i for i in silenced if not any(one.is_among(made.get(url, ()), now_ms) for one in wanted[i])
            )
            for url in self._urls
        }

    def _look(self, *, needed: bool) -> dict[str, list[_There]]:
        """Return address -> ours that are there, of those that answer."""
        found = {}
        urls = self._urls if needed else [url for url in self._urls if url in self._has_some]
        posts = {url: Post(url + _MANY, b"", method="GET") for url in urls}
        for url, answer in self._ask(list(posts.items())):
            try:
                listed = msgspec.json.decode(answer.body, type=list[_There])
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                self.trouble = f"{posts[url].shown}: {error}"
            else:
                found[url] = [one for one in listed if one.key]
        return found

    def _make(
        self, wanted: Iterable[Wanted], there: dict[str, list[_There]], now_ms: int
    ) -> dict[str, list[_There]]:
        """Make what is missing; return what is there then."""
        due = [(url, one) for one in wanted for url in there if not one.is_among(there[url], now_ms)]
        for (url, one), _ in self._ask([((u, w), Post(u + _MANY, w.body(now_ms))) for u, w in due]):
            there[url].append(_made(one, now_ms))
        return there

    def _end(self, keys: set[str], there: Mapping[str, Sequence[_There]], now_ms: int) -> None:
        """End what is live there and not wanted here any more."""
        live = {url: [one for one in ours if one.is_live(now_ms)] for url, ours in there.items()}
        over = [(url, one) for url, ours in live.items() for one in ours if one.key[:16] not in keys]
        for url, ours in live.items():
            (self._has_some.add if ours else self._has_some.discard)(url)
        for _ in self._ask([(None, Post(f"{url}{_ONE}{one.id}", b"", method="DELETE")) for url, one in over]):
            pass  # what could not be ended is found again at the next time

    def _ask(self, posts: Sequence[tuple[Any, Post]]) -> Iterator[tuple[Any, Answer]]:
        """Make all requests at once; yield what was taken, and note the trouble with the others."""
        answers = self._poster.ask(*(post for _, post in posts)) if posts else []
        for (about, post), answer in zip(posts, answers, strict=True):
            if answer.delivery.outcome is Outcome.DELIVERED:
                yield about, answer
            else:
                self.trouble = f"{post.shown}: {answer.delivery.detail}"


def _made(one: Wanted, now_ms: int) -> _There:
    """Return the silence that has just been made."""
    body = json.loads(one.body(now_ms))
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    return _There(
        id="", ends_at=datetime.fromisoformat(body["endsAt"]), updated_at=now, comment=body["comment"]
    )
