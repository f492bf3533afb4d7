"""``make fingerprint``: one hash each of what all stories, stored worlds and recorded captures come to.

Two checkouts with one total say the same of everything: the same transitions, the same alerts but for
their wording, the same saved groups but for fields that have their default.

    python -m tests.fingerprint --save /tmp/before.json     # in one checkout
    python -m tests.fingerprint --against /tmp/before.json  # in the other: names what differs; 1 if anything
    python -m tests.fingerprint --show world-classic-017    # all of it as JSON, for diff
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tests.fingerprint.marks import Said, mark, sources

PARTS = Said._fields
Marks = dict[str, list[str]]
"""Name -> hash of each part."""


def main() -> int:
    """Print the hashes; 1 if they differ from those of ``--against``."""
    asked = _asked()
    if asked.show:
        for name, play in sources(asked.show):
            _say(name, msgspec.json.format(msgspec.json.encode(play()._asdict())).decode())
        return 0
    marks = {name: play().marks() for name, play in sources(asked.only)}
    _say(*table(marks))
    if asked.save:
        asked.save.write_bytes(msgspec.json.format(msgspec.json.encode(marks)))
    if not asked.against:
        return 0
    before = msgspec.json.decode(asked.against.read_bytes(), type=Marks)
    found = [*differences({name: before[name] for name in before if asked.only in name}, marks)]
    _say(*(found or ["nothing differs"]))
    return 1 if found else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fingerprint", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", default="", metavar="WORD", help="names that hold this word")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write each one's hashes")
    parser.add_argument("--against", type=Path, metavar="FILE", help="name what differs from saved hashes")
    parser.add_argument("--show", default="", metavar="NAME", help="print what is hashed of one")
    return parser.parse_args()


def table(marks: Marks) -> Iterable[str]:
    """Yield a line for stories, worlds and captures, with a hash of each part, and one for all."""
    yield " ".join([f"{'':14}", *(f"{part:16}" for part in PARTS)]).rstrip()
    for kind in ("story", "world", "capture"):
        chosen = {name: one for name, one in marks.items() if name.startswith(kind)}
        hashes = [mark({name: one[place] for name, one in chosen.items()}) for place in range(len(PARTS))]
        yield " ".join([f"{len(chosen):5} {kind:8}", *hashes])
    yield f"total {mark(marks)}"


def differences(before: Marks, now: Marks) -> Iterable[str]:
    """Yield a line for each name of which a part differs, or which only one side has."""
    for name in sorted(before | now):
        if name not in before or name not in now:
            yield f"{name}: only {'now' if name in now else 'before'}"
            continue
        parts = [part for part, old, new in zip(PARTS, before[name], now[name], strict=True) if old != new]
        if parts:
            yield f"{name}: {', '.join(parts)}"


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{one}\n" for one in lines))


if __name__ == "__main__":
    sys.exit(main())
