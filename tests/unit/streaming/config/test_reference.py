"""The reference configuration learns new options from their declarations."""

import pytest

from streaming.config.config import parse_config
from tests.tables.reference import with_options
from tests.tables.tables import REFERENCE


def test_the_reference_is_written() -> None:
    """``make tables`` has nothing to add."""
    assert with_options(REFERENCE.read_text()) == REFERENCE.read_text()


@pytest.mark.parametrize(
    ("left_out", "added"),
    [
        pytest.param("  max_groups:", "  max_groups: 10000\n", id="an-option"),
        pytest.param(
            "      every:",
            f"{'      every: 30m':<40}# shortest time from one raise of a broker to its next\n",
            id="a-duration-with-its-meaning",
        ),
        pytest.param("trigger_interval:", "trigger_interval: 1s\n", id="an-option-of-the-file"),
        pytest.param("    continue:", "    continue: false\n", id="an-option-of-a-list-under-its-alias"),
        pytest.param("      deny:", "      deny: []\n", id="a-list"),
    ],
)
def test_an_option_that_is_missing_is_added_in_its_place(left_out: str, added: str) -> None:
    """With its default, and with the first line of what its declaration says."""
    lines = REFERENCE.read_text().splitlines(keepends=True)
    (place,) = [number for number, line in enumerate(lines) if line.startswith(left_out)]

    text = with_options("".join([*lines[:place], *lines[place + 1 :]]))

    assert text == "".join([*lines[:place], added, *lines[place + 1 :]])
    assert parse_config(text, {}) == parse_config(REFERENCE.read_text(), {})
