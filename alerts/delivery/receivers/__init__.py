"""Where alerts are delivered: a receiver makes one attempt and says how it went; the notifier tries again."""

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
