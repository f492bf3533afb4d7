"""Evidence on demand: the request log of a troubled group's coordinator, for a while and never for good."""

from streaming.driver.evidence.keeping import EvidenceKeeper

__all__ = [
    "EvidenceKeeper",
]
