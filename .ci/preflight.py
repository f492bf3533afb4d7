"""Says in one sentence what this machine lacks, before minutes are spent; runs on any Python 3.

Java is looked for here as well, since pip and the jars take minutes before anybody would miss it.
"""

import os
import re
import shutil
import subprocess
import sys

FREE_BYTES_MIN = (
    4 * 1024**3
)  # .venv takes 1.3 GB, building pyspark as much for a while, jars and data the rest


def complaint():
    """Return what is missing, or None."""
    if not (3, 11) <= sys.version_info[:2] < (3, 13):
        found = ".".join(map(str, sys.version_info[:3]))
        return (
            f"Python 3.11 or 3.12 is needed and {sys.executable} is {found}: make setup PYTHON=/path/to/one."
        )
    try:
        import ensurepip  # noqa: F401, PLC0415 - Debian leaves it out
    except ImportError:
        return "This Python cannot make environments: install its venv package (Debian: python3-venv)."
    free = shutil.disk_usage(os.getcwd()).free
    if free < FREE_BYTES_MIN:
        return f"Only {free / 1024**3:.1f} GB are free here and 4 GB are needed: make room."
    return java_complaint()


def java_complaint():
    """Return what is wrong with Java, or None."""
    home = os.environ.get("JAVA_HOME", "")
    candidate = os.path.join(home, "bin", "java")
    java = candidate if home and os.path.exists(candidate) else shutil.which("java")
    if java is None:
        return "Java 17 or newer is needed and none was found: install one (Debian: default-jre-headless)."
    banner = subprocess.run([java, "-version"], stderr=subprocess.PIPE, check=False).stderr.decode()  # noqa: S603
    version = re.search(r'version "(?:1\.)?(\d+)', banner)
    if version is None or int(version.group(1)) < 17:
        return f"Java 17 or newer is needed and {java} is older: install one, or set JAVA_HOME."
    return None


if __name__ == "__main__":
    problem = complaint()
    if problem:
        sys.stderr.write(f"make setup: {problem}\n")
        sys.exit(1)
