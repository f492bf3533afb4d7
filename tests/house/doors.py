"""Two contracts for import-linter: others import a package's door only, and no package grows out of hand."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from importlinter import Contract, ContractCheck, fields, output

Edges = list[tuple[str, str]]


def package_of(module: str) -> str:
    """Return the package that a module lies in, "" for a root package."""
    return module.rpartition(".")[0]


def past_doors(edges: Edges, packages: set[str]) -> Edges:
    """Return the imports that reach for a module inside a package from outside of it.

    Args:
        edges: who imports whom.
        packages: the modules that are packages; importing one is using its door.
    """
    return [
        (importer, imported)
        for importer, imported in edges
        if imported not in packages
        and "." in package_of(imported)
        and package_of(imported) not in (importer, package_of(importer))
    ]


def floors(edges: Edges) -> int:
    """Return how many modules the longest chain of imports has; the imports have no circle."""
    above: dict[str, set[str]] = defaultdict(set)
    for importer, imported in edges:
        above[importer].add(imported)
    known: dict[str, int] = {}

    def height(module: str) -> int:
        if module not in known:
            known[module] = 1 + max((height(one) for one in above.get(module, ())), default=0)
        return known[module]

    return max((height(one) for one in list(above)), default=1)


class DoorsContract(Contract):
    """Others import a package itself, whose ``__all__`` says what it offers, and nothing inside it."""

    type_name = "doors"

    def check(self, graph: Any, verbose: bool) -> ContractCheck:
        """Hold every import of the graph against the rule."""
        packages = _packages(graph)
        wrong = past_doors(sorted(_edges(graph)), packages)
        return ContractCheck(kept=not wrong, metadata={"wrong": wrong})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name each import."""
        for importer, imported in check.metadata["wrong"]:
            output.print_error(f"{importer} imports {imported}: import {package_of(imported)}")


class RoomsContract(Contract):
    """No package has more modules, or more floors of imports, than can be surveyed."""

    type_name = "rooms"
    modules_max = fields.IntegerField()
    floors_max = fields.IntegerField()

    def check(self, graph: Any, verbose: bool) -> ContractCheck:
        """Measure every package."""
        inner: Mapping[str, Edges] = defaultdict(list)
        for importer, imported in _edges(graph):
            if package_of(importer) == package_of(imported):
                inner[package_of(importer)].append((importer, imported))
        wrong = []
        for package in sorted(_packages(graph)):
            modules, high = len(graph.find_children(package)), floors(inner[package])
            if modules > self.modules_max or high > self.floors_max:  # type: ignore[operator]
                wrong.append((package, modules, high))
        return ContractCheck(kept=not wrong, metadata={"wrong": wrong})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name each package."""
        for package, modules, high in check.metadata["wrong"]:
            output.print_error(f"{package} has {modules} modules on {high} floors")


def _packages(graph: Any) -> set[str]:
    return {one for one in graph.modules if not graph.is_module_squashed(one) and graph.find_children(one)}


def _edges(graph: Any) -> Iterator[tuple[str, str]]:
    internal = {one for one in graph.modules if not graph.is_module_squashed(one)}
    for importer in internal:
        for imported in graph.find_modules_directly_imported_by(importer):
            if imported in internal:
                yield importer, imported
