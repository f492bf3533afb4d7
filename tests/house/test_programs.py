"""What is run as ``python -m`` is not imported by its own door."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_RUN = re.compile(r'-m"?,? "?(streaming(?:\.\w+)*)')


def _programs() -> list[str]:
    texts = [*ROOT.glob("streaming/**/*.py"), *ROOT.glob("**/README.md"), *ROOT.glob("tests/**/*.py")]
    return sorted({name for path in [ROOT / "Makefile", *texts] for name in _RUN.findall(path.read_text())})


@pytest.mark.parametrize("name", _programs())
def test_python_runs_it_without_a_warning(name: str) -> None:
    """A package has a ``__main__``; a module is not imported by its own door, or Python loads it twice."""
    place = ROOT.joinpath(*name.split("."))

    if place.is_dir():
        assert (place / "__main__.py").exists()
    else:
        assert f"from {name} import" not in (place.parent / "__init__.py").read_text()


def test_the_programs_are_found() -> None:
    """Those that start others or stand in the Makefile are among them."""
    assert {"streaming", "streaming.jars", "streaming.devkit.consumers"} <= set(_programs())
