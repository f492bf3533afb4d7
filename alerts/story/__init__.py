"""The story of one group, in words and as figures."""

from alerts.story.costs import Spent
from alerts.story.episodes import moves_of, refined
from alerts.story.figures import RebalanceSpan, StateSpan, Timeline, timeline
from alerts.story.narrative import Explanation, Present, explain
from alerts.story.text import as_text
from alerts.story.transition_records import transition_refusal

__all__ = [
    "Explanation",
    "Present",
    "RebalanceSpan",
    "Spent",
    "StateSpan",
    "Timeline",
    "as_text",
    "explain",
    "moves_of",
    "refined",
    "timeline",
    "transition_refusal",
]
