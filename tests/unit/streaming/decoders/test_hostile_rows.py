"""Nothing that stands in a topic ends the query, and an ordinary group lives on beside it."""

import logging

import pytest

from tests.unit.streaming.hostile import GROUP, hostile_rows, lived

AT_ONCE = 80
ROWS = hostile_rows()


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


ORDINARY = lived().told("transition", GROUP)


def _guilty(names: tuple[str, ...]) -> list[str]:
    """Return which of these rows, each by itself, ends the query or disturbs the ordinary group."""
    found = []
    for name in names:
        try:
            if lived(ROWS[name]).told("transition", GROUP) != ORDINARY:
                found.append(f"{name}: disturbs")
        except BaseException as error:
            found.append(f"{name}: {type(error).__name__}: {error}"[:200])
    return found


@pytest.mark.parametrize("first", range(0, len(ROWS), AT_ONCE))
def test_no_row_ends_the_query_or_disturbs_another_group(first: int) -> None:
    """Wild numbers, shapes and bytes in any topic are counted, and the groups beside them are mirrored."""
    names = tuple(ROWS)[first : first + AT_ONCE]
    try:
        told = lived(*(ROWS[name] for name in names)).told("transition", GROUP)
    except BaseException:
        pytest.fail("\n".join(_guilty(names)) or "only together")
    assert told == ORDINARY, "\n".join(_guilty(names)) or "only together"
