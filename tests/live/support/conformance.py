"""Random schedules of joins, crashes, freezes, leaves and restarts, judged by the brokers themselves.

``python -m tests.live.support.conformance --mode full --seconds 120 --seed 7`` starts a cluster, the job and
real consumers, asks DescribeGroups five times a second, and prints agreement, recall and precision of
transitions, accuracy of causes, alerts, and how long they took to the webhook.  Exit code 0 if the
agreement reaches ``--require`` and nothing is missing, extra or told in two ways.
"""

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

from streaming.devkit.kafka.versions import RELEASES
from streaming.jars.jars import DEFAULT_VERSIONS
from tests.live.support import comparing, schedule
from tests.live.support.schedule import Outcome, Schedule

TOLD_MAX = 20
REQUIRED = {"full": 0.9995, "quiet": 0.9995, "requests": 0.95, "offsets": 0.0}
"""Least agreement with the brokers' answers; the topic alone knows no phase of a classic rebalance."""


def main(arguments: list[str] | None = None) -> int:
    """Run one schedule, print the verdict, and leave the material in the folder that is named first."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.folder is not None and options.folder.exists() and any(options.folder.iterdir()):
        parser.error(f"{options.folder} must be empty: what an earlier run left would be read again")
    folder = options.folder or Path(tempfile.mkdtemp(prefix="groupwatch-conformance-"))
    folder.mkdir(parents=True, exist_ok=True)
    say(f"material: {folder}")
    planned = Schedule(
        mode=options.mode,
        seed=options.seed,
        seconds=options.seconds,
        groups=options.groups,
        brokers=options.brokers,
        kills=options.kills,
        failovers=options.failovers,
        version=options.version,
        upgrade_to=options.upgrade_to,
    )
    outcome = schedule.run(planned, folder, say)
    keep(outcome, folder)
    require = REQUIRED[options.mode] if options.require is None else options.require
    is_lenient = options.mode in {"requests", "offsets"}
    is_good = judge(outcome, require=require, lenient=is_lenient)
    if not is_good:
        say("\n".join([*outcome.histories(), "", f"played: {planned}"]))
    return 0 if is_good else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="conformance")
    parser.add_argument("--mode", choices=schedule.MODES, default="full")
    parser.add_argument("--brokers", type=int, choices=[1, 3], default=1)
    parser.add_argument("--version", choices=sorted(RELEASES), default=DEFAULT_VERSIONS["broker"])
    parser.add_argument(
        "--upgrade-to",
        choices=sorted(RELEASES),
        help="replace the brokers one by one by such ones on the way",
    )
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=0, help="SIGKILL the job that many times on the way")
    parser.add_argument("--failovers", type=int, default=0, help="take one of three brokers away so often")
    parser.add_argument("--require", type=float, default=None, help="least agreement; each mode has its own")
    parser.add_argument("--folder", type=Path, default=None, help="where the material stays")
    return parser


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def keep(outcome: Outcome, folder: Path) -> None:
    """Leave the material for whoever looks into a disagreement."""
    (folder / "transitions.jsonl").write_text("\n".join(json.dumps(one) for one in outcome.transitions))
    (folder / "alerts.jsonl").write_text("\n".join(json.dumps(one) for one in outcome.alerts))
    (folder / "polls.jsonl").write_text("\n".join(json.dumps(vars(one)) for one in outcome.polls))
    (folder / "lines.txt").write_text("\n".join(outcome.lines))
    (folder / "metrics.txt").write_text(outcome.metrics)


def judge(outcome: Outcome, *, require: float, lenient: bool) -> bool:
    """Print the verdict; True if it is good.  ``lenient``: between final states, best effort is enough."""
    result = outcome.agreement()
    missing, extra = outcome.missing_and_extra()
    say(f"agreement {result.share:.5f} of {result.judged} polls; wrong: {len(result.wrong)}")
    for poll, claimed in result.wrong[:TOLD_MAX]:
        say(f"  {poll.asked_at_ms} {poll.group}: broker {poll.state}, we {claimed}")
    told = len(comparing.effective(outcome.transitions))
    recall, precision = outcome.recall_and_precision()
    say(f"transitions {told}, recall {recall:.5f}, precision {precision:.5f}")
    say(f"missing {missing[:TOLD_MAX]}, extra {extra[:TOLD_MAX]}")
    compared, wrong = outcome.wrong_causes()
    accuracy = 1 - len(wrong) / max(compared, 1)
    say(f"accuracy of causes {accuracy:.5f}; {len(wrong)} of {compared} wrong")
    for group, generation, kind, reason in wrong[:TOLD_MAX]:
        say(f"  {group} generation {generation}: we {kind}, broker: {reason[:150]}")
    say(f"told in two ways: {outcome.twofold}")
    final = outcome.states == outcome.brokers_states
    if not final:
        say(f"final states: brokers {outcome.brokers_states}, we {outcome.states}")
    _print_alerts(outcome)
    _print_reconciliation(outcome.metrics)
    say(f"job exit code {outcome.exit_code}")
    exact = lenient or not (missing or extra or wrong)
    good = result.share >= require and exact and final
    return good and not outcome.twofold and outcome.exit_code == 0


def _print_alerts(outcome: Outcome) -> None:
    for alert in outcome.alerts:
        names = ", ".join(one["client_id"] for one in alert["culprits"])
        say(
            f"  {alert['name']} {alert['group']} r{alert['revision']} {alert['status']} "
            f"{alert['severity']} [{names}] {alert['summary']}"
        )
    delays = outcome.delays_ms()
    if delays:
        at = {share: delays[min(int(len(delays) * share), len(delays) - 1)] for share in (0.5, 0.99)}
        say(f"detected to webhook: median {at[0.5]} ms, p99 {at[0.99]} ms, n {len(delays)}")


def _print_reconciliation(metrics: str) -> None:
    """Say what the job itself found when it asked the brokers; what it had wrong, it counted and healed."""
    found = re.findall(r'^groupwatch_(?:answers|divergence)_total{.*="(\w+)"} (\S+)$', metrics, re.MULTILINE)
    say("reconciliation: " + ", ".join(f"{what} {float(count):.0f}" for what, count in found if float(count)))


if __name__ == "__main__":
    sys.exit(main())
