"""``python -m tests.oracle.duel``: see ``playing``."""

import sys

from tests.oracle.duel.playing import main

sys.exit(main())
