"""The notifier: in the job, or in a process of its own."""

from streaming.notify.direct_alerts import DirectAlerts, history_file, state_file
from streaming.notify.notifying import alert_logs, make_notifier, receiver_of, run
from streaming.notify.trial import NoReceiverError, send_test_page

__all__ = [
    "DirectAlerts",
    "NoReceiverError",
    "alert_logs",
    "history_file",
    "make_notifier",
    "receiver_of",
    "run",
    "send_test_page",
    "state_file",
]
