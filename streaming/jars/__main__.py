"""Fetches every jar as ``python -m streaming.jars``, for ``make setup``."""

from streaming.jars.jars import main

if __name__ == "__main__":
    main()
