"""The demo's script: what is done to whom, and when."""

import heapq
import itertools
from collections.abc import Callable

from streaming.devkit.demo import plan
from streaming.devkit.demo.cast import Cast

LAST_S = 190.0
"""The crash loop has ended by then, and everything else long before."""


class Script:
    """What is done when: actions by their second after the start."""

    def __init__(self, cast: Cast, say: Callable[[str], None]) -> None:
        """Writes the whole script."""
        self._cast = cast
        self._say = say
        self._order = itertools.count()
        self._due: list[tuple[float, int, str, Callable[[], None]]] = []
        self._silent_leader()
        self._crash_loop()
        self._at(4, f"freezing {plan.FROZEN.client_id}", lambda: cast.freeze(plan.FROZEN))
        self._at(6, f"{plan.SLOW.client_id} meets a very slow record", lambda: cast.slow_down(plan.SLOW))
        self._rolling_restart()

    def _at(self, second: float, text: str, action: Callable[[], None]) -> None:
        heapq.heappush(self._due, (second, next(self._order), text, action))

    def _silent_leader(self) -> None:
        leader = plan.SILENT_LEADER
        self._at(0, f"{leader.client_id} joins, and will never assign", lambda: self._cast.start(leader))
        for follower in plan.FOLLOWERS:
            # Later, so that the silent one is the first member and thereby the leader.
            self._at(1.5, f"{follower.client_id} joins", lambda one=follower: self._cast.start(one))  # type: ignore[misc]

    def _crash_loop(self, rounds: int = 12) -> None:
        """Dead for 10 s, longer than its session of 6 s, then alive for 6 s."""
        member = plan.CRASHING
        for n in range(rounds):
            self._at(2 + 16 * n, f"killing {member.client_id}", lambda: self._cast.crash(member))
            self._at(12 + 16 * n, f"{member.client_id} is back", lambda: self._cast.start(member))

    def _rolling_restart(self) -> None:
        for n, member in enumerate(plan.RESTARTED):
            self._at(45 + 9 * n, f"rolling restart: {member.client_id} goes", self._leaver(member))
            self._at(48 + 9 * n, f"rolling restart: {member.client_id} is back", self._comer(member))

    def _leaver(self, member: plan.Member) -> Callable[[], None]:
        return lambda: self._cast.shut_down(member)

    def _comer(self, member: plan.Member) -> Callable[[], None]:
        return lambda: self._cast.start(member)

    def play_until(self, second: float) -> None:
        """Does everything that is due."""
        while self._due and self._due[0][0] <= second:
            _, _, text, action = heapq.heappop(self._due)
            self._say(text)
            action()
