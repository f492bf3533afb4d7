"""Commits, transactions and end offsets of groups of every type."""

from coordinator_model.groups.offsets.commits import offsets_committed
from coordinator_model.groups.offsets.intake import note_ends
from coordinator_model.groups.offsets.open_transactions import has_come_to, waits
from coordinator_model.groups.offsets.retention import EXPIRY_MARGIN_MS, retention_of, unused_since
from coordinator_model.groups.offsets.tracking import ENDS_LATE_MS, LEFT_MAX, committed, ended, grows, is_far
from coordinator_model.groups.offsets.transactions import claim, open_claims, transaction_ended

__all__ = [
    "ENDS_LATE_MS",
    "EXPIRY_MARGIN_MS",
    "LEFT_MAX",
    "claim",
    "committed",
    "ended",
    "grows",
    "has_come_to",
    "is_far",
    "note_ends",
    "offsets_committed",
    "open_claims",
    "retention_of",
    "transaction_ended",
    "unused_since",
    "waits",
]
