"""The receivers: each makes one attempt and reports how it went; the notifier decides on retries."""

from alerts.delivery.receivers.log import LogReceiver
from alerts.delivery.receivers.receiver import Delivery, Notification, Outcome, Receiver
from alerts.delivery.receivers.webhook import WebhookReceiver

__all__ = [
    "Delivery",
    "LogReceiver",
    "Notification",
    "Outcome",
    "Receiver",
    "WebhookReceiver",
]
