"""The receivers: each makes one attempt and reports how it went; the notifier decides on retries."""

from collections.abc import Callable, Mapping

from alerts.delivery.receivers.alert_body import ReceiverContext, labels_of
from alerts.delivery.receivers.alertmanager import AlertmanagerReceiver
from alerts.delivery.receivers.apprise import AppriseReceiver, service_at
from alerts.delivery.receivers.log import LogReceiver
from alerts.delivery.receivers.messages import Messages
from alerts.delivery.receivers.receiver import Delivery, Notification, Outcome, Receiver
from alerts.delivery.receivers.webhook import WebhookReceiver

MakeReceiver = Callable[..., Receiver]
"""Makes a receiver of its name, the context and the options of its kind (durations in ms)."""

KINDS: Mapping[str, MakeReceiver] = {
    "alertmanager": AlertmanagerReceiver.of_options,
    "apprise": AppriseReceiver.of_options,
    "webhook": WebhookReceiver.of_options,
    "log": LogReceiver.of_options,
}
"""Kind of receiver, as the configuration names it -> how it is made."""

__all__ = [
    "KINDS",
    "AlertmanagerReceiver",
    "AppriseReceiver",
    "Delivery",
    "LogReceiver",
    "Messages",
    "Notification",
    "Outcome",
    "Receiver",
    "ReceiverContext",
    "WebhookReceiver",
    "labels_of",
    "service_at",
]
