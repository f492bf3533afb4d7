"""Applies observations to one group; ``apply`` is the only entry point."""

from coordinator_model.groups.reconciling import KINDS, NEWS, Finding, Verdict, both_sides, find, reconcile
from coordinator_model.groups.table import apply, beat, due_at, is_new, new_group, pass_time

__all__ = [
    "KINDS",
    "NEWS",
    "Finding",
    "Verdict",
    "apply",
    "beat",
    "both_sides",
    "due_at",
    "find",
    "is_new",
    "new_group",
    "pass_time",
    "reconcile",
]
