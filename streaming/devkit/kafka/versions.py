"""What differs between the versions of Kafka that can be started here: one row for each.

A further version is a further row, and its jars in ``jars-lock.json``.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker of one version needs to be told in its own way."""

    log4j: Literal[1, 2]
    """1 (as reload4j) writes files and a shipper of ours sends them; 2 sends to the events topic itself."""
    settings: Mapping[str, str] = {}
    """Of ``server.properties``, beside what all versions have."""
    replicated: tuple[str, ...] = ()
    """Prefixes of the settings of internal topics that only this version has."""


RELEASES: Mapping[str, Release] = {
    "3.4.1": Release(log4j=1),
    # The new coordinator is in 3.9 too, as a preview: the default is what people ran.
    "3.9.2": Release(log4j=1, settings={"group.coordinator.new.enable": "false"}),
    "4.3.1": Release(log4j=2, replicated=("share.coordinator.state.topic",)),
}
"""By exact version.  Formatting is the same in all: ``kafka.tools.StorageTool format``."""
