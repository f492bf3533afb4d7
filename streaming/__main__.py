"""Runs ``groupwatch`` as ``python -m streaming``."""

from streaming.cli import main

if __name__ == "__main__":
    main()
