"""``python -m tests.oracle FILE``: JSON lines of requests in, JSON lines of outcomes out.

The one place of the package that touches a file; ``-`` is standard input.
"""

import sys
from pathlib import Path

from tests.oracle.lines import play


def main(arguments: list[str]) -> int:
    """Play one file; 2 if it cannot be read."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m tests.oracle FILE|-\n")
        return 2
    try:
        text = sys.stdin.read() if arguments[0] == "-" else Path(arguments[0]).read_text(encoding="utf-8")
        for line in play(text.splitlines()):
            sys.stdout.write(f"{line}\n")
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
