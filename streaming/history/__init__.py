"""What was: lag, members, owners, rebalances and alerts of the last hours and days, on local disk."""

from streaming.history.keeper import Keeper
from streaming.history.past import Lane, Owned, Past, Point

__all__ = [
    "Keeper",
    "Lane",
    "Owned",
    "Past",
    "Point",
]
