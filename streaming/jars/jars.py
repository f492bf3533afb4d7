"""The jars of the Kafka broker and of Spark's Kafka connector: fetched by Ivy, checked against a lock.

pyspark ships Apache Ivy, so neither Maven nor the address of any repository is needed here.  A
company mirror is named by ``GROUPWATCH_IVY_SETTINGS`` (the path of an ivysettings.xml).
``jars-lock.json`` lists every artifact with its size and SHA-256; nothing is resolved
transitively, so what runs is exactly what was tested.
"""

import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from streaming.jars.java import JavaError, java_command

Kind = Literal["broker", "connector"]
Tell = Callable[[str], None]

DEFAULT_VERSIONS: dict[Kind, str] = {"broker": "4.3.1", "connector": "4.2.0"}
"""The versions of the Kafka broker and of Spark's connector (which must equal Spark's own)."""

FREE_BYTES_MIN = 2 * 1024**3
"""Jars take 60 MB twice (Ivy's cache and ours); the rest is room for a broker's first segments."""

_LOCK_FILE = Path(__file__).with_name("jars-lock.json")
_IVY_SETTINGS = """<ivysettings>
  <settings defaultResolver="public"/>
  <resolvers><ibiblio name="public" m2compatible="true"/></resolvers>
</ivysettings>
"""


class JarError(Exception):
    """The jars are not available; the message is one sentence that says why and what to do."""


class LockedJar(msgspec.Struct, frozen=True):
    """One artifact of the lock; ``type`` is Ivy's word for how it is packaged (jar or bundle)."""

    organisation: str
    artifact: str
    revision: str
    type: str
    size: int
    sha256: str

    @property
    def file_name(self) -> str:
        """The artifact's file in our cache; the organisation keeps equal names apart."""
        return f"{self.organisation}_{self.artifact}-{self.revision}.jar"


def locked_jars(kind: Kind, version: str | None = None) -> list[LockedJar]:
    """The lock's jars for one kind and version.

    Raises:
        JarError: if this version was never locked.
    """
    lock = msgspec.json.decode(_LOCK_FILE.read_bytes(), type=dict[str, list[LockedJar]])
    wanted = version or DEFAULT_VERSIONS[kind]
    if f"{kind}-{wanted}" not in lock:
        known = ", ".join(locked_versions(kind))
        raise JarError(f"There is no {kind} {wanted} in jars-lock.json; known versions: {known}.")
    return lock[f"{kind}-{wanted}"]


def locked_versions(kind: Kind) -> list[str]:
    """Every version of ``kind`` in the lock."""
    names = json.loads(_LOCK_FILE.read_text(encoding="utf-8"))
    return [name.removeprefix(f"{kind}-") for name in names if name.startswith(f"{kind}-")]


def cache_dir() -> Path:
    """Where jars are kept: ``GROUPWATCH_CACHE``, else ``.cache`` of a checkout, else the user's cache."""
    chosen = os.environ.get("GROUPWATCH_CACHE")
    if chosen:
        return Path(chosen).expanduser().resolve()
    project = Path(__file__).resolve().parents[2]
    if (project / "pyproject.toml").exists():
        return project / ".cache"
    return Path.home() / ".cache" / "groupwatch"


def tell_stderr(line: str) -> None:
    """Shows one line of progress without touching standard output."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def ensure_jars(kind: Kind, version: str | None = None, *, tell: Tell = tell_stderr) -> list[Path]:
    """The paths of every jar of ``kind``, fetched if need be and equal to the lock.

    Each run compares every file with the lock (0.2 s of CPU for a broker's 47 jars, 0.03 s for the
    connector's; no network) and fetches files that differ, so that nobody who can write to the cache folder
    can run code here.

    Raises:
        JarError: with one sentence: no network, no space, wrong checksum, unknown version, no Java.
    """
    wanted = version or DEFAULT_VERSIONS[kind]
    jars = locked_jars(kind, wanted)
    folder = cache_dir() / "jars" / f"{kind}-{wanted}"
    if not _missing(jars, folder):
        return [folder / jar.file_name for jar in jars]
    with _exclusive(folder):
        missing = _missing(jars, folder)  # another process may have fetched them meanwhile
        if missing:
            _fetch(missing, folder, tell)
    return [folder / jar.file_name for jar in jars]


# --- what is there already ------------------------------------------------------------------------


def _missing(jars: list[LockedJar], folder: Path) -> list[LockedJar]:
    """Return the jars that are not there, or not as the lock has them."""
    return [jar for jar in jars if not _matches(folder / jar.file_name, jar)]


def _matches(path: Path, jar: LockedJar) -> bool:
    if not path.exists() or path.stat().st_size != jar.size:
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest() == jar.sha256


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Lets one process at a time fetch into ``folder``; the others wait and then find all there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise JarError(f"The jar cache {folder} cannot be written: {error.strerror or error}.") from error


# --- fetching -------------------------------------------------------------------------------------


def _fetch(jars: list[LockedJar], folder: Path, tell: Tell) -> None:
    """Retrieves ``jars`` into ``folder``; each is moved there only after its sum was found right."""
    free = shutil.disk_usage(folder).free
    if free < FREE_BYTES_MIN:
        raise JarError(f"Only {free / 1024**3:.1f} GB are free at {folder}, and 2 GB are needed: make room.")
    work = folder / f"fetch-{os.getpid()}"
    work.mkdir(exist_ok=True)
    try:
        _run_ivy(jars, work, tell)
        for jar in jars:
            _accept(work / jar.file_name, jar, folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _accept(fetched: Path, jar: LockedJar, folder: Path) -> None:
    if not fetched.exists():
        raise JarError(f"{jar.file_name} could not be fetched; see {_log_path(folder)}.")
    if not _matches(fetched, jar):
        _forget_in_ivy(jar)
        raise JarError(
            f"{jar.file_name} does not have the SHA-256 in jars-lock.json and was refused: "
            "the repository, or something on the way, changed it."
        )
    fetched.replace(folder / jar.file_name)


def _forget_in_ivy(jar: LockedJar) -> None:
    """Removes a wrong artifact from Ivy's own cache, or the next run would only copy it again."""
    shutil.rmtree(cache_dir() / "ivy" / jar.organisation / jar.artifact, ignore_errors=True)


def _log_path(folder: Path) -> Path:
    return folder / "ivy.log"


def _run_ivy(jars: list[LockedJar], work: Path, tell: Tell) -> None:
    (work / "ivy.xml").write_text(ivy_module(jars), encoding="utf-8")
    command = [
        _java(), "-cp", str(ivy_jar()), "org.apache.ivy.Main",
        "-settings", ivy_settings(work), "-ivy", str(work / "ivy.xml"), "-cache", str(cache_dir() / "ivy"),
        "-retrieve", str(work / "[organisation]_[artifact]-[revision].jar"),
        "-types", *sorted({jar.type for jar in jars}),
    ]  # fmt: skip
    _follow_ivy(command, jars, work.parent, tell)


def ivy_settings(work: Path) -> str:
    """The path of Ivy's settings: the operator's, else the public repository's, written into ``work``.

    Raises:
        JarError: the operator's file is not there.
    """
    settings = os.environ.get("GROUPWATCH_IVY_SETTINGS")
    if settings is None:
        settings = str(work / "ivysettings.xml")
        Path(settings).write_text(_IVY_SETTINGS, encoding="utf-8")
    elif not Path(settings).is_file():
        raise JarError(f"GROUPWATCH_IVY_SETTINGS names {settings}, which is not a file.")
    return settings


def _follow_ivy(command: list[str], jars: list[LockedJar], folder: Path, tell: Tell) -> None:
    """Runs Ivy, tells of each jar that arrives, and keeps all it says in a log."""
    total = sum(jar.size for jar in jars) / 1024**2
    tell(f"Fetching {len(jars)} jars ({total:.0f} MB) into {folder}")
    said: list[str] = []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None  # noqa: S101 - PIPE was asked for
    arrived = 0
    for line in process.stdout:
        said.append(line)
        found = re.search(r"\[SUCCESSFUL \] (\S+)!\S+\.jar", line)
        if found:
            arrived += 1
            tell(f"  {arrived}/{len(jars)} {found.group(1)}")
    code = process.wait()
    _log_path(folder).write_text("".join(said), encoding="utf-8")
    if code:
        raise JarError(ivy_failure("".join(said), _log_path(folder)))


def ivy_module(jars: list[LockedJar]) -> str:
    """The ivy.xml that asks for exactly ``jars``: ``master`` is the artifact without what it needs."""
    module = ET.Element("ivy-module", version="2.0")
    ET.SubElement(module, "info", organisation="groupwatch", module="jars")
    ET.SubElement(ET.SubElement(module, "configurations"), "conf", name="default")
    wanted = ET.SubElement(module, "dependencies")
    alone: dict[str, Any] = {"conf": "default->master", "transitive": "false"}
    for jar in jars:
        ET.SubElement(
            wanted, "dependency", org=jar.organisation, name=jar.artifact, rev=jar.revision, **alone
        )
    return ET.tostring(module, encoding="unicode")


def ivy_failure(said: str, log: Path) -> str:
    """One sentence for a failed run of Ivy, from what it printed."""
    if "UNRESOLVED DEPENDENCIES" not in said and "download failed" not in said.lower():
        return f"Apache Ivy failed; its output is in {log}."
    unreachable = re.search(
        r"UnknownHost|[Cc]onnection (?:refused|reset|timed out)|timed out|unreachable|SSL", said
    )
    why = "the repository could not be reached" if unreachable else "the repository did not have all of them"
    return (
        f"The jars could not be fetched because {why}: connect this machine to the network, or name your "
        f"mirror's ivysettings.xml in GROUPWATCH_IVY_SETTINGS (details in {log})."
    )


def _java() -> str:
    try:
        return java_command()
    except JavaError as error:
        raise JarError(str(error)) from error


def ivy_jar() -> Path:
    """The Ivy that came with pyspark.

    Raises:
        JarError: there is no pyspark.
    """
    spec = importlib.util.find_spec("pyspark")
    places = spec.submodule_search_locations if spec else None
    found = sorted(Path(place) / "jars" for place in places or [])
    jars = [jar for folder in found for jar in sorted(folder.glob("ivy-*.jar"))]
    if not jars:
        raise JarError("pyspark and the ivy jar in its jars folder were not found: run make setup.")
    return jars[-1]


def main() -> None:
    """Fetches every jar that groupwatch uses, for ``make setup``."""
    kinds: tuple[Kind, ...] = ("broker", "connector")
    try:
        for kind in kinds:
            ensure_jars(kind)
    except JarError as error:
        tell_stderr(str(error))
        sys.exit(1)
