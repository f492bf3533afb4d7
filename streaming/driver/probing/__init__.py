"""Asks the brokers about groups, a few at a time, and writes the answers into the stream."""

from streaming.driver.probing.asking import GroupProbe
from streaming.driver.probing.brokers import NotAllowedError
from streaming.driver.probing.cluster_view import ClusterView
from streaming.driver.probing.ends import ENDS_EVERY_S, EndsTeller, TopicEnds

__all__ = [
    "ENDS_EVERY_S",
    "ClusterView",
    "EndsTeller",
    "GroupProbe",
    "NotAllowedError",
    "TopicEnds",
]
