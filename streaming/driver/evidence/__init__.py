"""Evidence on demand: raises the request log of a troubled group's coordinator for a limited time."""

from streaming.driver.evidence.keeping import EvidenceKeeper

__all__ = [
    "EvidenceKeeper",
]
