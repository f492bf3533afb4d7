"""``groupwatch bench``: what the job can do on this machine, each figure beside its floor.

Prints one JSON object; the rows and their bounds are in ``targets.py``.
"""

from streaming.devkit.bench.command import main

__all__ = ["main"]
