#!/usr/bin/env python3
"""Builds the archive that executors need, and prints its path: groupwatch with all but pyspark that it needs.

Run it with the interpreter that runs the driver: the archive is for workers of the same Python minor version,
operating system and processor.  Versions and hashes are those of requirements.lock.  What is built is kept,
so that a second call takes no time: the dependencies as long as the lock, the archive as long as the code.
"""

import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements.lock"
OURS = ("coordinator_model", "alerts", "streaming")
ON_THE_WORKER = frozenset({"pyspark", "py4j"})
"""A Spark worker has these, in the version of its Spark."""


class ArchiveError(Exception):
    """The archive cannot be built; the text says why."""


def plain_name(name: str) -> str:
    """Return a distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(distribution: str = "groupwatch") -> set[str]:
    """Return what ``distribution`` needs, with what that needs, as installed in this interpreter.

    Raises:
        ArchiveError: it is not installed here.
    """
    found: set[str] = set()
    waiting = [distribution]
    while waiting:
        name = waiting.pop()
        try:
            requirements = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            if name == distribution:
                raise ArchiveError(
                    f"{sys.executable} has no {name}: run 'make setup', or set PYTHON to the interpreter "
                    "that groupwatch is installed in"
                ) from None
            continue  # for another platform or version of Python
        if name != distribution:
            found.add(name)
        for text in requirements:
            wanted = plain_name(re.split(r"[^A-Za-z0-9._-]", text, maxsplit=1)[0])
            if "extra ==" not in text and wanted not in found | ON_THE_WORKER:
                waiting.append(wanted)
    return found


def locked(names: set[str], lock: str) -> str:
    """Return the entries of ``names`` in the lock, with their hashes.

    Raises:
        ArchiveError: one has no entry.
    """
    entries = {}
    for entry in re.split(r"\n(?=[^\s#])", lock):
        entries[plain_name(entry.split("==", 1)[0].strip())] = entry.rstrip()
    missing = names - entries.keys()
    if missing:
        raise ArchiveError(f"{LOCK} has no entry for {', '.join(sorted(missing))}: run 'make lock'")
    return "\n".join(entries[name] for name in sorted(names)) + "\n"


def install(requirements: str, cache: Path) -> Path:
    """Return the folder with the dependencies, installed by pip if they are not there.

    Raises:
        ArchiveError: pip could not install them.
    """
    platform = f"{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    folder = cache / f"packages-{platform}-{digest(requirements.encode())}"
    if folder.is_dir():
        return folder
    print(f"Installing the executors' packages into {folder} (once for each lock)", file=sys.stderr)  # noqa: T201
    with tempfile.TemporaryDirectory(dir=cache) as work:
        wanted = Path(work, "requirements.txt")
        wanted.write_text(requirements)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += ["--no-deps", "--no-compile", "--only-binary", ":all:", "--require-hashes"]
        made = subprocess.run([*command, "--target", f"{work}/made", "-r", str(wanted)], check=False)  # noqa: S603
        if made.returncode:
            raise ArchiveError("pip could not install the locked packages; above it says why")
        os.rename(f"{work}/made", folder)
    return folder


def pack(packages: Path, cache: Path) -> Path:
    """Return the archive of the packages and our code, made if it is not there."""
    sources = sorted(
        path for name in OURS for path in (ROOT / name).rglob("*") if path.is_file() and _counts(str(path))
    )
    content = [f"{path.relative_to(ROOT)} {digest(path.read_bytes())}" for path in sources]
    name = digest("\n".join([packages.name, *content]).encode())
    archive = cache / f"groupwatch-{name}.tar.gz"  # never deleted: a running job serves it to new executors
    if archive.is_file():
        return archive
    beside = archive.with_suffix(f".{os.getpid()}")
    with tarfile.open(beside, "w:gz", compresslevel=1) as tar:
        tar.add(packages, arcname=".", filter=lambda one: one if _counts(one.name) else None)
        for path in sources:
            tar.add(path, arcname=str(path.relative_to(ROOT)))
    beside.rename(archive)
    return archive


def digest(content: bytes) -> str:
    """Return a short name for ``content``."""
    return hashlib.sha256(content).hexdigest()[:16]


def _counts(path: str) -> bool:
    return "__pycache__" not in path and "/streaming/devkit/" not in path and "/bin/" not in path


def main() -> int:
    """Print the archive's path."""
    cache = Path(os.environ.get("GROUPWATCH_CACHE") or ROOT / ".cache") / "executors"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        requirements = locked(needed(), LOCK.read_text(encoding="utf-8"))
        print(pack(install(requirements, cache), cache))  # noqa: T201 - this is what it is for
    except (ArchiveError, OSError) as error:
        print(f"archive.py: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
