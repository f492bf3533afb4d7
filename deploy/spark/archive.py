#!/usr/bin/env python3
"""Builds the archive that executors need, and prints its path: groupwatch with all but pyspark that it needs.

Run it with the interpreter that runs the driver: the archive is for workers of the same Python minor version,
operating system and processor.  Versions and hashes are those of requirements-run.lock.  What is built is
kept, so that a second call takes no time: the dependencies as long as the lock, the archive as long as the
code.
"""

import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements-run.lock"
OURS = ("coordinator_model", "alerts", "streaming")
ON_THE_WORKER = frozenset({"pyspark", "py4j"})
"""A Spark worker has these, in the version of its Spark."""
FOR_ASSISTANTS = frozenset({
    "attrs", "cffi", "cryptography", "httpcore2", "httpx2", "httpx2-jsfetch",
    "jsonschema", "jsonschema-specifications", "mcp", "mcp-types", "opentelemetry-api",
    "pycparser", "pyjwt", "python-multipart", "pywin32", "referencing",
    "rpds-py", "sse-starlette", "truststore",
})  # fmt: skip
"""What the extra ``mcp`` adds to the lock: only the driver answers assistants."""


class ArchiveError(Exception):
    """The archive cannot be built; the text says why."""


def shipped(lock: str) -> str:
    """Return the lock's entries, with their hashes, without those that a worker has or never needs."""
    entries = re.split(r"\n(?=[^\s#])", lock)
    left_out = ON_THE_WORKER | FOR_ASSISTANTS
    return "\n".join(one for one in entries if re.split("[=; ]", one)[0] not in left_out)


def install(requirements: str, cache: Path, *options: str) -> Path:
    """Return the folder with the dependencies, installed by pip (with ``options``) if they are not there.

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
        command += ["--no-deps", "--no-compile", "--only-binary", ":all:", "--require-hashes", *options]
        command += ["--target", f"{work}/made", "-r", str(wanted)]
        made = subprocess.run(command, check=False)  # noqa: S603 - our own arguments
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
        requirements = shipped(LOCK.read_text(encoding="utf-8"))
        print(pack(install(requirements, cache), cache))  # noqa: T201 - this is what it is for
    except (ArchiveError, OSError) as error:
        print(f"archive.py: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
