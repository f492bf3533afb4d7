"""The archive that executors get: all that the job imports there, in the versions of the lock."""

import importlib.util
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


def test_it_holds_what_runs_and_no_pyspark(archive: ModuleType) -> None:
    """In the versions of the lock, with all hashes; a worker has its own Spark, and answers no assistants."""
    lock = archive.LOCK.read_text(encoding="utf-8")
    kept = archive.shipped(lock)
    names = {line.split("==")[0] for line in kept.splitlines() if "==" in line}
    assert {"msgspec", "pandas", "numpy", "pyarrow"} <= names
    left_out = {line.split("==")[0] for line in lock.splitlines() if "==" in line} - names
    assert left_out == {"pyspark", "py4j"} | archive.FOR_ASSISTANTS
    assert all("--hash=sha256:" in line for line in kept.splitlines() if line.startswith(" "))


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


def test_what_cannot_be_installed_is_said(archive: ModuleType, tmp_path: Path) -> None:
    """A hash that does not fit ends it; no half of an archive stays behind."""
    wrong = "msgspec==0.22.0 --hash=sha256:" + 64 * "0" + "\n"
    with pytest.raises(archive.ArchiveError, match="pip could not install"):
        archive.install(wrong, tmp_path, "--no-index")
    assert list(tmp_path.iterdir()) == []
