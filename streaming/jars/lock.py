"""Makes an entry of ``jars-lock.json``; for developers who add a version.

``python -m streaming.jars.lock broker-3.9.2 org.apache.kafka:kafka_2.13:3.9.2
org.slf4j:slf4j-reload4j:1.7.36 ch.qos.reload4j:reload4j:1.2.25 --without io.netty`` lets Ivy resolve their
dependencies once, and writes each artifact with its size and SHA-256.  Check the result, and start a broker
with it, before you commit it.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path

import msgspec

from streaming.jars.jars import JarError, LockedJar, ivy_failure, ivy_jar, ivy_settings
from streaming.jars.java import java_command

_LOCK_FILE = Path(__file__).with_name("jars-lock.json")
_FETCHED = re.compile(r"\[SUCCESSFUL \] (\S+?)#(\S+?);(\S+?)!\S+?\.jar(?:\((\w+)\))?")
"""Ivy's line for an artifact that it downloaded; in brackets how it is packaged, unless as a jar."""


def resolved(wanted: Iterable[str], work: Path) -> list[LockedJar]:
    """Every artifact that ``wanted`` (organisation:artifact:revision) need at run time, sorted.

    Raises:
        JarError: Ivy could not resolve them.
    """
    (work / "ivy.xml").write_text(_module(wanted), encoding="utf-8")
    command = [
        java_command(), "-cp", str(ivy_jar()), "org.apache.ivy.Main",
        "-settings", ivy_settings(work), "-ivy", str(work / "ivy.xml"),
        # A cache of its own, since Ivy tells the packaging only of what it downloads.
        "-cache", str(work / "cache"), "-types", "jar", "bundle",
        "-retrieve", str(work / "jars" / "[organisation]_[artifact]-[revision].jar"),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        (work / "ivy.log").write_text(done.stdout, encoding="utf-8")
        raise JarError(ivy_failure(done.stdout, work / "ivy.log"))
    found = [_locked(words, work / "jars") for words in _FETCHED.findall(done.stdout)]
    return sorted(found, key=lambda jar: (jar.organisation, jar.artifact))


def _module(wanted: Iterable[str]) -> str:
    module = ET.Element("ivy-module", version="2.0")
    ET.SubElement(module, "info", organisation="groupwatch", module="lock")
    ET.SubElement(ET.SubElement(module, "configurations"), "conf", name="default")
    needs = ET.SubElement(module, "dependencies")
    for text in wanted:
        organisation, artifact, revision = text.split(":")
        ET.SubElement(
            needs, "dependency", org=organisation, name=artifact, rev=revision, conf="default->runtime,master"
        )
    return ET.tostring(module, encoding="unicode")


def _locked(words: tuple[str, ...], folder: Path) -> LockedJar:
    organisation, artifact, revision, kind = words
    content = (folder / f"{organisation}_{artifact}-{revision}.jar").read_bytes()
    return LockedJar(
        organisation, artifact, revision, kind or "jar", len(content), hashlib.sha256(content).hexdigest()
    )


def lock_text(lock: dict[str, list[LockedJar]]) -> str:
    """The lock file: one artifact a line, so that a change shows as one."""
    entries = []
    for name in sorted(lock):
        jars = ",\n".join(f"  {json.dumps(msgspec.to_builtins(jar))}" for jar in lock[name])
        entries.append(f' "{name}": [\n{jars}\n ]')
    return "{\n" + ",\n".join(entries) + "\n}\n"


def main(arguments: list[str] | None = None) -> None:
    """Resolve and write one entry."""
    parser = argparse.ArgumentParser(prog="jars_lock")
    parser.add_argument("name", help="of the entry: broker-<version> or connector-<version>")
    parser.add_argument("artifact", nargs="+", help="organisation:artifact:revision")
    parser.add_argument("--without", action="append", default=[], help="organisations that are not needed")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="groupwatch-lock-") as work:
        found = resolved(options.artifact, Path(work))
    lock = msgspec.json.decode(_LOCK_FILE.read_bytes(), type=dict[str, list[LockedJar]])
    lock[options.name] = [jar for jar in found if jar.organisation not in options.without]
    _LOCK_FILE.write_text(lock_text(lock), encoding="utf-8")
    sys.stdout.write(f"{options.name}: {len(lock[options.name])} jars\n")


if __name__ == "__main__":
    main()
