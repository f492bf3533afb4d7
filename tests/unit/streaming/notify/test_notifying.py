"""The notifier as the configuration describes it."""

from alerts.delivery.receivers import KINDS, ReceiverContext
from alerts.delivery.receivers.log import LogReceiver
from alerts.delivery.receivers.webhook import WebhookReceiver
from streaming.config.config import parse_config
from streaming.config.receivers import ReceiverConfig
from streaming.notify.notifying import receiver_of

CLUSTER = "clusters: [{name: prod, bootstrap_servers: ['127.0.0.1:1']}]\n"


def test_each_kind_that_can_be_configured_can_be_made() -> None:
    """And none is made that nobody can configure."""
    assert ReceiverConfig.kinds() == list(KINDS)


def test_a_receiver_has_the_options_of_its_entry() -> None:
    """Durations in milliseconds; the public address of the page comes from ``http``."""
    config = parse_config(
        f"{CLUSTER}receivers:\n"
        "- {name: a, webhook: {url: 'http://127.0.0.1:1/', max_age: 2h}}\n"
        "- {name: b, log: {}}\n"
    )
    webhook, log = (receiver_of(one, ReceiverContext("http://gw:9464")) for one in config.receivers)
    assert isinstance(webhook, WebhookReceiver)
    assert isinstance(log, LogReceiver)
    assert (webhook.name, webhook.max_age_ms, log.name) == ("a", 7_200_000, "b")
    webhook.close()
