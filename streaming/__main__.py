"""Runs ``groupwatch`` as ``python -m streaming``, and by path, as spark-submit does."""

import os.path
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
# Started by path, Python looks for every module in this folder first: a room could hide one of its own.
sys.path[:] = [os.path.dirname(_HERE) if os.path.abspath(one) == _HERE else one for one in sys.path]

from streaming.cli import main  # noqa: E402 - found by the path above

if __name__ == "__main__":
    main()
