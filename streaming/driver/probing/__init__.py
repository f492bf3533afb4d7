"""Asks the brokers about groups, a few at a time, and writes the answers into the stream."""

from streaming.driver.probing.asking import GroupProbe, Picture
from streaming.driver.probing.brokers import NotAllowedError
from streaming.driver.probing.ends import EndsTeller, Readers
from streaming.driver.probing.pictured import ClusterPicture

__all__ = [
    "ClusterPicture",
    "EndsTeller",
    "GroupProbe",
    "NotAllowedError",
    "Picture",
    "Readers",
]
