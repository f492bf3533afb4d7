"""``python -m streaming`` is ``groupwatch``."""

from streaming.cli import main

if __name__ == "__main__":
    main()
