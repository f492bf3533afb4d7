"""Makes ``assignments.jsonl.gz`` anew: ``python tests/golden/assignors/make.py``.

It needs Java 17 and the jars of the embedded broker.  The seeds are fixed, so the same Kafka gives the same
file, byte for byte.
"""

import gzip
import os
import subprocess
from pathlib import Path

from streaming.jars.jars import ensure_jars
from streaming.jars.java import java_command

FOLDER = Path(__file__).parent
PLAYS = "40"


def main() -> None:
    """Write the file."""
    jars = os.pathsep.join(map(str, ensure_jars("broker")))
    command = [java_command(), "-cp", jars, "-Dlog4j2.level=OFF", "Assignors.java", PLAYS]
    done = subprocess.run(command, cwd=FOLDER, check=True, stdout=subprocess.PIPE)
    (FOLDER / "assignments.jsonl.gz").write_bytes(gzip.compress(done.stdout, mtime=0))


if __name__ == "__main__":
    main()
