"""Runs one consumer as ``python -m streaming.devkit.consumers``."""

import sys

from streaming.devkit.consumers.play import main

if __name__ == "__main__":
    sys.exit(main())
