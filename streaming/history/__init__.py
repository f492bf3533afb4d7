"""What was: lag, members, owners, rebalances and alerts of the last hours and days, on local disk."""

from streaming.history.past import Lane, Owned, Past, Point

__all__ = [
    "Lane",
    "Owned",
    "Past",
    "Point",
]
