"""Joins ES modules into one script, so that a file opened from disk needs no other.  Pure.

Each module becomes a function that is called once, those that it imports before it.  Only the forms of
``import`` and ``export`` that the page's modules have are understood; anything else is refused.
"""

import re
from collections.abc import Callable, Mapping
from posixpath import dirname, join, normpath
from typing import NamedTuple

_IMPORT = re.compile(r'^import\s*(?:\{([^}]*)\}|([\w$]+))\s*from\s*"([^"]+)";?', re.MULTILINE)
_PASSED_ON = re.compile(r'^export\s*\{([^}]*)\}\s*from\s*"([^"]+)";?', re.MULTILINE)
_LISTED = re.compile(r"(?:^|(?<=[;}]))export\s*\{([^}]*)\};?", re.MULTILINE)
_DECLARED = re.compile(r"^export ((?:async )?(?:const|function|class) ([\w$]+))", re.MULTILINE)
_DEFAULT = re.compile(r"(?:^|(?<=;))export default (?=function\b|class\b)", re.MULTILINE)
_SOURCE_MAP = re.compile(r"^//# sourceMappingURL=.*$", re.MULTILINE)
_UNKNOWN = re.compile(r"^\s*(?:import|export)\b.*|\bimport\.meta\b.*|;export\b.*", re.MULTILINE)
_LEAVES_SCRIPT = re.compile(r"</script|<!--", re.IGNORECASE)


class JoinError(Exception):
    """Modules that cannot be joined; the message names the place."""


class _Joined(NamedTuple):
    variable: str
    exports: Mapping[str, str]
    """Name outside -> name inside."""


def joined(read: Callable[[str], str], entry: str, instead: Mapping[str, str]) -> str:
    """Return one script that does what a browser does when it loads ``entry``.

    Args:
        read: returns the text of a module, by its path; raises KeyError if there is none.
        entry: the path of the first module.
        instead: path -> path of the module that takes its place.

    Raises:
        JoinError: a module is missing, imports in a circle or what nobody exports, or has a form that is
            not understood.
    """
    return _Joining(read, instead).of(entry)


class _Joining:
    def __init__(self, read: Callable[[str], str], instead: Mapping[str, str]) -> None:
        self._read = read
        self._instead = instead
        self._known: dict[str, _Joined | None] = {}
        """None: it is being joined."""
        self._parts: list[str] = []

    def of(self, entry: str) -> str:
        self._add(entry)
        script = "\n".join(self._parts)
        found = _LEAVES_SCRIPT.search(script)
        if found is not None:
            raise JoinError(f"{found[0]!r} would end the script within a document")
        return script

    def _add(self, path: str) -> _Joined:
        known = self._known.get(path)
        if known is not None:
            return known
        if path in self._known:
            raise JoinError(f"{path} imports itself in a circle")
        self._known[path] = None
        try:
            text = self._read(path)
        except KeyError:
            raise JoinError(f"there is no module {path}") from None
        body, exports = self._body(path, _SOURCE_MAP.sub("", text))
        variable = f"module{len(self._parts)}"
        names = ", ".join(f"{out}: {inside}" for out, inside in exports.items())
        self._parts.append(f"// {path}\nconst {variable} = (() => {{\n{body};\nreturn {{ {names} }};\n}})();")
        made = self._known[path] = _Joined(variable, exports)
        return made

    def _body(self, path: str, text: str) -> tuple[str, dict[str, str]]:
        exports: dict[str, str] = {}

        def passed_on(found: re.Match[str]) -> str:
            pairs = _pairs(found[1])
            exports.update({outside: outside for _, outside in pairs})
            return self._bound(path, found[2], pairs)

        def imported(found: re.Match[str]) -> str:
            pairs = [("default", found[2])] if found[2] else _pairs(found[1])
            return self._bound(path, found[3], pairs)

        def listed(found: re.Match[str]) -> str:
            exports.update({outside: inside for inside, outside in _pairs(found[1])})
            return ""

        def declared(found: re.Match[str]) -> str:
            exports[found[2]] = found[2]
            return found[1]

        def default(_: re.Match[str]) -> str:
            exports["default"] = "whole"
            return "const whole = "

        for form, change in (
            (_PASSED_ON, passed_on),
            (_IMPORT, imported),
            (_LISTED, listed),
            (_DECLARED, declared),
            (_DEFAULT, default),
        ):
            text = form.sub(change, text)
        left = _UNKNOWN.search(text)
        if left is not None:
            raise JoinError(f"{path} has a form that is not understood: {left[0].strip()[:80]}")
        return text.rstrip().removesuffix(";"), exports

    def _bound(self, path: str, target: str, pairs: list[tuple[str, str]]) -> str:
        """Return the statement that binds names of another module."""
        place = normpath(join(dirname(path), target))
        place = self._instead.get(place, place)
        other = self._add(place)
        for name, _ in pairs:
            if name not in other.exports:
                raise JoinError(f"{path} imports {name} from {place}, which does not export it")
        names = ", ".join(f"{name}: {here}" for name, here in pairs)
        return f"const {{ {names} }} = {other.variable};"


def _pairs(names: str) -> list[tuple[str, str]]:
    """Return (before "as", after it) of each name in a list."""
    found = []
    for one in filter(None, map(str.strip, names.split(","))):
        before, _, after = one.partition(" as ")
        found.append((before.strip(), (after or before).strip()))
    return found
