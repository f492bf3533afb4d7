"""The story of one group, in words."""

from alerts.story.narrative import Explanation, Present, explain
from alerts.story.text import as_text
from alerts.story.transition_records import transition_refusal

__all__ = [
    "Explanation",
    "Present",
    "as_text",
    "explain",
    "transition_refusal",
]
