"""A view with its store and its alerts, fed as the job feeds them."""

from collections.abc import Callable, Iterable, Mapping

from alerts.delivery.silences import NO_QUIET, LiveQuiet, Quiet
from streaming.group_store.store import GroupStore
from streaming.serving.known_lags import Recent
from streaming.serving.shown_alerts import ShownAlerts
from streaming.serving.view import View


class FedView(View):
    """Takes rows of batches."""

    def __init__(
        self,
        clusters: Iterable[str] = (),
        *,
        clock_ms: Callable[[], int],
        rebalanced: Callable[[str, float], None] = lambda _cluster, _seconds: None,
        detected: Callable[[float], None] = lambda _seconds: None,
        quiet: Quiet | LiveQuiet = NO_QUIET,
        held_back: Callable[[str], Mapping[str, str]] = lambda _alert_id: {},
        recent: Recent | None = None,
    ) -> None:
        self.store = GroupStore(clusters, clock_ms=clock_ms, rebalanced=rebalanced)
        self.shown = ShownAlerts(clock_ms, detected)
        super().__init__(
            self.store, self.shown, clock_ms=clock_ms, quiet=quiet, held_back=held_back, recent=recent
        )

    def apply(self, cluster: str, rows: Iterable[tuple[str, str, bytes]]) -> None:
        """Take the rows of one batch."""
        kept = list(rows)
        self.store.apply(cluster, kept)
        self.shown.apply(cluster, kept)
