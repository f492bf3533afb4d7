"""The contracts for import-linter themselves, on small made-up graphs."""

import pytest

from tests.house.doors import floors, past_doors

PACKAGES = {"shop", "shop.till", "shop.till.drawer", "street"}


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        pytest.param("shop.window", "shop.till", id="the door of a room"),
        pytest.param("shop.till.coins", "shop.till.notes", id="a neighbour in the same room"),
        pytest.param("shop.till", "shop.till.coins", id="a door's own room"),
        pytest.param("shop.till.coins", "shop.till.drawer", id="the door of a room inside its own"),
        pytest.param("street.lamp", "shop.window", id="what lies in no room"),
        pytest.param("street.lamp", "shop.till.drawer", id="the door of an inner room, from far away"),
    ],
)
def test_ways_through_a_door(importer: str, imported: str) -> None:
    """Nothing to complain of."""
    assert past_doors([(importer, imported)], PACKAGES) == []


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        pytest.param("shop.window", "shop.till.coins", id="from beside the room"),
        pytest.param("shop", "shop.till.coins", id="from the house around it"),
        pytest.param("street.lamp", "shop.till.coins", id="from another house"),
        pytest.param("shop.till", "shop.till.drawer.key", id="two rooms deep"),
        pytest.param("shop.till.drawer.key", "shop.till.coins", id="from an inner room outwards"),
    ],
)
def test_ways_past_a_door(importer: str, imported: str) -> None:
    """Each is named."""
    assert past_doors([(importer, imported)], PACKAGES) == [(importer, imported)]


@pytest.mark.parametrize(
    ("edges", "high"),
    [
        pytest.param([], 1, id="nobody imports"),
        pytest.param([("a", "b")], 2, id="one import"),
        pytest.param([("a", "b"), ("a", "c"), ("a", "d")], 2, id="many beside each other"),
        pytest.param([("a", "b"), ("b", "c"), ("c", "d")], 4, id="a chain"),
        pytest.param([("a", "d"), ("a", "b"), ("b", "c"), ("c", "d")], 4, id="the longest way counts"),
        pytest.param([("a", "b"), ("x", "y"), ("y", "z")], 3, id="two towers"),
    ],
)
def test_floors(edges: list[tuple[str, str]], high: int) -> None:
    """As many modules as the longest chain of imports has."""
    assert floors(edges) == high
