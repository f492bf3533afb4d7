"""Event alerts: they fire at an occurrence, collect further ones, and end some time after the last."""

from collections.abc import Callable
from functools import partial

import msgspec

from alerts.alert import Culprit, Severity, clock, some, span, who_is
from alerts.rules.engine.lifecycle import Finding, OpenAlert
from alerts.rules.engine.repeated import QUIET_MS, quiet_at_ms, until_quiet
from alerts.rules.engine.situation import (
    CULPRITS_MAX,
    EVIDENCE_MAX,
    NOTHING,
    EventMemory,
    Occurrence,
    Situation,
    Verdict,
    culprit,
)
from coordinator_model.kafka import CauseKind
from coordinator_model.state import Departure

IN_TURN_MS = 5_000
"""One cause hits several members within this time."""

Behind = Callable[[Situation, EventMemory], tuple[str, str]]
"""Returns a key and a sentence; key "" means nothing to say."""


def _nothing(_: Situation, __: EventMemory) -> tuple[str, str]:
    return "", ""


class EventRule:
    """An alert about members that left in one way; ``sentence`` describes one departure in full."""

    def __init__(
        self,
        *,
        name: str,
        how: CauseKind,
        severity: Callable[[Situation], Severity],
        sentence: Callable[[Situation, Departure], str],
        happened: str,
        noun: str,
        cost: str,
        advice: str,
        behind: Behind = _nothing,
        is_told: Callable[[Situation, Departure], bool] = lambda _, __: True,
        setting: Callable[[Departure], str] = lambda _: "",
    ) -> None:
        """Take the wording: ``happened`` finishes "3 members of group g …", ``noun`` "no further …".

        ``behind`` says what several occurrences have in common, or what became known after one; ``is_told``
        says whether a departure counts; ``setting`` adds the configured value to the advice.
        """
        self.name = name
        self._how = how
        self._severity = severity
        self._sentence = sentence
        self._happened = happened
        self._noun = noun
        self._cost = cost
        self._advice = advice
        self._behind = behind
        self._is_told = is_told
        self._setting = setting

    def evaluate(self, situation: Situation) -> Verdict:
        """Return the verdict on the group."""
        news = [gone for gone in situation.step.departures if self._is_news(situation, gone)]
        memory = situation.memory.events.get(self.name)
        opened = situation.opened(self.name)
        if not news and memory is None and opened is None:
            return NOTHING
        if news:
            memory = self._note(situation, news)
        last_ms = -1 if memory is None else memory.last_ms
        is_over = not news and situation.now_ms >= quiet_at_ms(last_ms, opened)
        finding = None
        if memory is not None and not is_over and (news or self._has_learned(situation, memory, opened)):
            finding = partial(self._finding, situation, memory)
        verdict = until_quiet(
            situation,
            self.name,
            last_ms=last_ms,
            finding=finding,
            closing=self._closing(situation, memory),
        )
        if is_over:
            situation.memory.events.pop(self.name, None)
        return verdict

    def _is_news(self, situation: Situation, departure: Departure) -> bool:
        return departure.how is self._how and self._is_told(situation, departure)

    def _has_learned(self, situation: Situation, memory: EventMemory, opened: OpenAlert | None) -> bool:
        """Say whether the common cause is now known better than the alert says."""
        key = self._behind(situation, memory)[0]
        return bool(key) and opened is not None and opened.aspect.partition("/")[2] != key

    def _note(self, situation: Situation, news: list[Departure]) -> EventMemory:
        first_ms = news[0].at_ms
        memory = situation.memory.events.setdefault(
            self.name, EventMemory(first_ms=first_ms, last_ms=first_ms)
        )
        for departure in news:
            memory.count += 1
            memory.in_turn += departure.at_ms - memory.last_ms >= IN_TURN_MS
            # An occurrence learned late is news as well, so its quiet time begins now.
            memory.last_ms = max(memory.last_ms, departure.at_ms, situation.now_ms)
            told = Occurrence(
                culprit=culprit(departure, share=1, basis=departure.basis),
                sentence=f"{clock(departure.at_ms)}: {self._sentence(situation, departure)}",
            )
            memory.occurrences.append(told)
        memory.occurrences = memory.occurrences[-CULPRITS_MAX:]
        return memory

    def _finding(self, situation: Situation, memory: EventMemory) -> Finding:
        group, newest = situation.group.group, memory.occurrences[-1]
        if memory.count == 1:
            summary = f"Group {group} lost {newest.sentence.split(': ', 1)[1]}"
        elif len(set(_names(memory))) == 1 and memory.in_turn == memory.count - 1:
            # One client came back under new ids; several members of one name that leave together are several.
            summary = f"Group {group} lost {_names(memory)[0]} {memory.count} times to a {self._noun}."
        else:
            summary = f"{memory.count} members of group {group} {self._happened}: {some(_names(memory))}."
        key, behind = self._behind(situation, memory)
        return Finding(
            starts_at_ms=memory.first_ms,
            severity=self._severity(situation),
            summary=summary,
            cause=f"{newest.sentence} {behind}".rstrip(),
            culprits=_culprits(memory),
            evidence=tuple(one.sentence for one in memory.occurrences[-EVIDENCE_MAX:]),
            cost=self._cost,
            advice=self._advice + self._set(situation, newest),
            # Beyond the culprits that the alert can list, only the number is news, and not at each member.
            aspect=f"{memory.count // CULPRITS_MAX}/{key}" if key else str(memory.count // CULPRITS_MAX),
        )

    def _set(self, situation: Situation, newest: Occurrence) -> str:
        gone = [one for one in situation.group.departures if one.how is self._how]
        return next(
            (self._setting(one) for one in reversed(gone) if one.member_id == newest.culprit.member_id), ""
        )

    def _closing(self, situation: Situation, memory: EventMemory | None) -> str:
        count = f"{memory.count} in all; " if memory else ""
        group = situation.group
        quiet = f"Group {group.group}: no further {self._noun} for {span(QUIET_MS)}"
        return f"{quiet} ({count}the group is {group.state})."


def _names(memory: EventMemory) -> list[str]:
    return [who_is(one.culprit) for one in reversed(memory.occurrences)]


def _culprits(memory: EventMemory) -> tuple[Culprit, ...]:
    share = round(1 / len(memory.occurrences), 4)
    return tuple(msgspec.structs.replace(one.culprit, share=share) for one in memory.occurrences)
