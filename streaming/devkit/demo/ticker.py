"""What the demo prints of the messages that arrive: about whom, and what is new in it."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby

from rich.markup import escape

from streaming.devkit.kafka import ReceivedAlert, WebhookProbe

_INDENT = " " * 7


class Ticker:
    """Says each message as it arrives; what still fires as it did before is only counted."""

    def __init__(
        self, probe: WebhookProbe, say: Callable[[str], None], say_below: Callable[[str], None]
    ) -> None:
        """Begin with nothing said.

        Args:
            probe: where messages arrive.
            say: prints a line with its time.
            say_below: prints a line that belongs to the one above.
        """
        self._probe = probe
        self._shown = 0
        self._say = say
        self._say_below = say_below
        self._messages: Counter[str] = Counter()
        self._said: dict[str, tuple[str, str]] = {}
        """Fingerprint -> status and summary as they were said last."""

    def subjects(self) -> set[tuple[str, str]]:
        """Return name and group of each alert of which a message told that it fires."""
        return {one.subject for one in self._probe.firing()}

    def look(self) -> None:
        """Say what has arrived since the last look."""
        told = self._probe.told[self._shown :]
        self._shown += len(told)
        for _, alerts in groupby(told, key=lambda one: (one.received_at_ms, one.idempotency_key)):
            self._show_one(list(alerts))

    def _show_one(self, alerts: Sequence[ReceivedAlert]) -> None:
        about = alerts[0].subject[1] or "the cluster"
        self._messages[about] += 1
        news = [one for one in alerts if self._said.get(one.fingerprint) != _what(one)]
        as_before = f", {len(alerts) - len(news)} as before" if len(news) < len(alerts) else ""
        self._say(f"[bold]message {self._messages[about]} about {escape(about)}[/bold]{as_before}")
        for one in news:
            self._said[one.fingerprint] = _what(one)
            self._say_below(_INDENT + _headline(one))


def _what(told: ReceivedAlert) -> tuple[str, str]:
    return told.status, told.annotations["summary"]


def _headline(told: ReceivedAlert) -> str:
    colour = "red" if told.status == "firing" else "green"
    return (
        f"[{colour}]{told.status:8}[/{colour}] [bold]{told.subject[0]}[/bold]: "
        f"{escape(told.annotations['summary'])}"
    )
