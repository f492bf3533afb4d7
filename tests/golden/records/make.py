"""Makes every file of this folder anew: ``python tests/golden/records/make.py``.

It needs Java 17 and the jars of the embedded broker.  The seeds are fixed, so the same Kafka gives the same
files, byte for byte.
"""

import gzip
import json
import os
import subprocess
from pathlib import Path

from streaming.jars.jars import ensure_jars
from streaming.jars.java import java_command

FOLDER = Path(__file__).parent
DAMAGED_PER_VERSION = 100
BIG = ("long", "many")
"""Styles whose rows are too long for people to read; they are packed."""


def golden(*arguments: str) -> list[str]:
    """Return the lines that ``Golden.java`` prints."""
    jars = os.pathsep.join(map(str, ensure_jars("broker")))
    command = [java_command(), "-cp", jars, "Golden.java", *arguments]
    done = subprocess.run(command, cwd=FOLDER, check=True, stdout=subprocess.PIPE)
    return done.stdout.decode().splitlines()


def pack(name: str, lines: list[str]) -> None:
    """Write lines into a packed file that is the same each time."""
    text = "".join(f"{line}\n" for line in lines)
    (FOLDER / name).write_bytes(gzip.compress(text.encode(), mtime=0))


def main() -> None:
    """Write the files."""
    big: list[str] = []
    files: dict[str, list[str]] = {}
    for line in golden():
        row = json.loads(line)
        (big if row["style"] in BIG else files.setdefault(row["name"], [])).append(line)
    for old in FOLDER.glob("*.jsonl"):
        old.unlink()
    for name, lines in files.items():
        (FOLDER / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    pack("big.jsonl.gz", big)
    pack("damaged.jsonl.gz", golden("damaged", str(DAMAGED_PER_VERSION)))


if __name__ == "__main__":
    main()
