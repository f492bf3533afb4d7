"""Runs the shipper of a cluster as ``python -m streaming.devkit.kafka <folder>/cluster.json``."""

import sys

from streaming.devkit.kafka.shipping import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
