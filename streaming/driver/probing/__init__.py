"""Asks the brokers about groups, a few at a time, and writes the answers into the stream."""

from streaming.driver.probing.asking import GroupProbe
from streaming.driver.probing.brokers import NotAllowedError
from streaming.driver.probing.cluster_view import ClusterView
from streaming.driver.probing.ends import EndsTeller, TopicEnds

__all__ = [
    "ClusterView",
    "EndsTeller",
    "GroupProbe",
    "NotAllowedError",
    "TopicEnds",
]
