"""The version of this installation."""

from importlib import metadata


def version() -> str:
    """Return the installed version; "unknown" in a folder that was never installed."""
    try:
        return metadata.version("groupwatch")
    except metadata.PackageNotFoundError:
        return "unknown"
