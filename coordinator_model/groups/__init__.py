"""Applies observations to one group by ``apply``; ``beat`` and ``commit`` are its short ways."""

from coordinator_model.groups.reconciling import KINDS, NEWS, Finding, Verdict, both_sides, find, reconcile
from coordinator_model.groups.table import (
    apply,
    beat,
    commit,
    due_at,
    is_new,
    is_plain_commit,
    new_group,
    pass_time,
)

__all__ = [
    "KINDS",
    "NEWS",
    "Finding",
    "Verdict",
    "apply",
    "beat",
    "both_sides",
    "commit",
    "due_at",
    "find",
    "is_new",
    "is_plain_commit",
    "new_group",
    "pass_time",
    "reconcile",
]
