"""The archive that executors get: all that the job imports there, in the versions of the lock."""

import importlib.util
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def archive() -> ModuleType:
    spec = importlib.util.spec_from_file_location("archive", ROOT / "deploy" / "spark" / "archive.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_holds_what_executors_import_and_no_pyspark(archive: ModuleType) -> None:
    """Dependencies of dependencies too; a worker has its own Spark, and developers' tools stay here."""
    found = archive.needed()
    assert {"msgspec", "pandas", "numpy", "pyarrow", "pytz"} <= found
    assert not {"pyspark", "py4j", "pytest", "mypy"} & found


def test_versions_and_hashes_are_the_locks(archive: ModuleType) -> None:
    """One entry for each, whole."""
    lock = archive.LOCK.read_text(encoding="utf-8")
    entries = archive.locked({"pandas", "typing-extensions"}, lock)
    heads = [line.split("==")[0] for line in entries.splitlines() if "==" in line]
    assert heads == ["pandas", "typing-extensions"]
    assert all("--hash=sha256:" in line for line in entries.splitlines() if line.startswith(" "))


def test_what_the_lock_does_not_name_is_refused(archive: ModuleType) -> None:
    """Nothing is taken from an index in whatever version it has today."""
    with pytest.raises(archive.ArchiveError, match=r"no entry for leftpad.*make lock"):
        archive.locked({"leftpad"}, "pandas==2.3.3 \\\n    --hash=sha256:00\n")


def test_our_code_is_in_it_without_the_embedded_kafka(archive: ModuleType, tmp_path: Path) -> None:
    """A second call finds the first one's archive."""
    packages = tmp_path / "packages"
    (packages / "msgspec").mkdir(parents=True)
    (packages / "msgspec" / "__init__.py").touch()
    made = archive.pack(packages, tmp_path)
    with tarfile.open(made) as tar:
        names = set(tar.getnames())
    assert {"./msgspec/__init__.py", "streaming/workers/__init__.py", "alerts/__init__.py"} <= names
    assert not [name for name in names if "devkit" in name or "__pycache__" in name]
    written_at = made.stat().st_mtime_ns
    assert archive.pack(packages, tmp_path) == made
    assert made.stat().st_mtime_ns == written_at


def test_an_interpreter_without_groupwatch_is_told_so(tmp_path: Path) -> None:
    """The sentence names the interpreter and what to do; nothing is printed that looks like a path."""
    said = subprocess.run(
        [sys.executable, "-S", str(ROOT / "deploy" / "spark" / "archive.py")],
        env={"GROUPWATCH_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stdout) == (1, "")
    assert f"{sys.executable} has no groupwatch: run 'make setup'" in said.stderr
