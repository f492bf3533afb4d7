"""What of a new file holds at once, and what needs a restart."""

import pytest

from streaming.config.config import parse_config
from streaming.config.reloading import changes

OLD = """
clusters: [{name: a, bootstrap_servers: ['127.0.0.1:1']}, {name: b, bootstrap_servers: ['127.0.0.1:2']}]
checkpoint: /var/lib/groupwatch
receivers: [{name: oncall, log: {}}]
"""


@pytest.mark.parametrize(
    ("before", "after", "made"),
    [
        ("receivers: [{name: oncall, log: {}}]", "receivers: [{name: chat, log: {}}]", ("receivers",)),
        ("receivers:", "routes: [{receivers: [oncall], group_by: cluster}]\nreceivers:", ("routes",)),
        ("receivers:", "silences: [{groups: [x]}]\nreceivers:", ("silences",)),
        ("receivers:", "rules: {rebalance_storm: {severity: critical}}\nreceivers:", ("rules",)),
        ("['127.0.0.1:2']", "['127.0.0.1:2'], groups: {deny: [x]}", ("clusters (b).groups",)),
        ("receivers:", "receivers:", ()),
    ],
)
def test_what_can_change_does(before: str, after: str, made: tuple[str, ...]) -> None:
    """And the file's values hold."""
    new = parse_config(OLD.replace(before, after))
    found = changes(parse_config(OLD), new)
    assert (found.config, found.made, found.waiting) == (new, made, ())


@pytest.mark.parametrize(
    ("before", "after", "waiting"),
    [
        ("/var/lib/groupwatch", "/elsewhere", "checkpoint"),
        ("checkpoint:", "http: {port: 1}\ncheckpoint:", "http.port"),
        ("checkpoint:", "trigger_interval: 5s\ncheckpoint:", "trigger_interval"),
        ("'127.0.0.1:2'", "'127.0.0.1:3'", "clusters (b).bootstrap_servers"),
        (", {name: b, bootstrap_servers: ['127.0.0.1:2']}", "", "clusters (b)"),
        ("name: b", "name: c", "clusters (c)"),
    ],
)
def test_what_cannot_change_is_named_and_stays(before: str, after: str, waiting: str) -> None:
    """The rest of the file holds all the same."""
    old = parse_config(OLD)
    found = changes(old, parse_config(OLD.replace(before, after)))
    assert waiting in found.waiting
    assert (found.made, found.config) == ((), old)
