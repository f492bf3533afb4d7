"""Asks the brokers what they know of groups, a little at a time, and puts the answers into the stream."""

from streaming.driver.probing.asking import GroupProbe, Picture
from streaming.driver.probing.brokers import NONE, NOT_AUTHORIZED, NotAllowedError
from streaming.driver.probing.ends import EndsTeller, Readers
from streaming.driver.probing.pictured import ClusterPicture

__all__ = [
    "NONE",
    "NOT_AUTHORIZED",
    "ClusterPicture",
    "EndsTeller",
    "GroupProbe",
    "NotAllowedError",
    "Picture",
    "Readers",
]
