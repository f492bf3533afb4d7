"""Fails on files that are not valid YAML or TOML; for the commit hook."""

import sys
import tomllib
from pathlib import Path

import yaml


def complaint(path: Path) -> str | None:
    """What is wrong with one file, or None."""
    try:
        if path.suffix == ".toml":
            tomllib.loads(path.read_text(encoding="utf-8"))
        else:
            list(yaml.parse(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader))
    except (tomllib.TOMLDecodeError, yaml.YAMLError, UnicodeDecodeError) as error:
        return f"{path}: {error}"
    return None


if __name__ == "__main__":
    complaints = [said for name in sys.argv[1:] if (said := complaint(Path(name)))]
    sys.stderr.write("".join(f"{said}\n" for said in complaints))
    sys.exit(1 if complaints else 0)
