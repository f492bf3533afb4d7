"""``make state``: note what saved structs have gained; refuse whatever else has become of them."""

import sys

from tests.saved.fields import LIST, breaches, collected, read, written
from tests.saved.golden import between_releases, blobs, differences, make, uncovered


def main() -> int:
    """Bring the list and the golden shards up to date; 1 if today's structs are no continuation."""
    entries = collected()
    wrong = breaches(read(LIST.read_text()), entries)
    wrong += [f"{blob.path.name}: {one}" for blob in blobs() for one in differences(blob)]
    if wrong:
        _say(*wrong, "Nothing was written: see tests/golden/state/README.md for how saved structs may grow.")
        return 1
    LIST.write_text(written(entries))
    _say(f"{LIST.name}: {len(entries)} structs and enums")
    if uncovered() or len(between_releases()) > 1:  # several: of branches that were merged
        made = make(entries).path.name
        _say(f"{made}: the golden shard of today's structs, in place of those since the last release;")
        _say("commit what was written and what is gone")
    return 0


def _say(*sentences: str) -> None:
    sys.stdout.write("".join(f"{one}\n" for one in sentences))


if __name__ == "__main__":
    sys.exit(main())
