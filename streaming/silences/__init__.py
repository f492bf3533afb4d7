"""Silences that people add at run time: kept in a topic, followed by everybody who delivers."""

from streaming.silences.commands import silence_app
from streaming.silences.desk import ShownSilence, SilenceDesk, SilenceList, SilenceRefusedError
from streaming.silences.following import Follower, quiet_at
from streaming.silences.topic import SilencesTopic, topics_of

__all__ = [
    "Follower",
    "ShownSilence",
    "SilenceDesk",
    "SilenceList",
    "SilenceRefusedError",
    "SilencesTopic",
    "quiet_at",
    "silence_app",
    "topics_of",
]
