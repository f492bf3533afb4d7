"""The notifier: in the job, or in a process of its own."""

from streaming.notify.direct_alerts import DirectAlerts, state_file
from streaming.notify.notifying import make_notifier, run

__all__ = [
    "DirectAlerts",
    "make_notifier",
    "run",
    "state_file",
]
