"""The image's Dockerfile as instructions, and its build stage played in a folder in place of a container."""

import fnmatch
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
DOCKERFILE = ROOT / "deploy" / "images" / "Dockerfile"

_NEEDS_A_SYSTEM = ("apt-get",)
"""What a test cannot do in a folder: a ``RUN`` with one of these is left out."""


class Instruction(NamedTuple):
    """One instruction: its word and all that follows on its lines."""

    word: str
    text: str


class Stage(NamedTuple):
    """One stage of the build: its base, its name, and what happens in it."""

    base: str
    name: str
    instructions: Sequence[Instruction]

    def last(self, word: str) -> str:
        """Return the text of the last instruction of a kind."""
        return [one.text for one in self.instructions if one.word == word][-1]

    def environment(self) -> dict[str, str]:
        """Return what its ``ENV`` instructions set."""
        pairs = [part for one in self.instructions if one.word == "ENV" for part in one.text.split()]
        return dict(part.split("=", 1) for part in pairs)


def stages() -> tuple[Mapping[str, str], list[Stage]]:
    """Return the defaults of the arguments before the first stage, and the stages in order."""
    arguments: dict[str, str] = {}
    found: list[Stage] = []
    current: list[Instruction] = []
    for one in _instructions(DOCKERFILE.read_text()):
        if one.word == "FROM":
            base, _, name = one.text.partition(" AS ")
            current = []
            found.append(Stage(base, name, current))
        elif found:
            current.append(one)
        else:
            name, _, value = one.text.partition("=")
            arguments[name] = value
    return arguments, found


def stage(name: str) -> Stage:
    """Return one stage by its name."""
    (one,) = (one for one in stages()[1] if one.name == name)
    return one


def _instructions(text: str) -> list[Instruction]:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [Instruction(*line.split(" ", 1)) for line in joined.splitlines()]


def context() -> list[Path]:
    """Return the files of the checkout that ``.dockerignore`` lets into the build, relative to its root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    files = map(Path, filter(None, listed.stdout.split("\0")))
    return [file for file in files if (ROOT / file).is_file() and _is_let_in(file, patterns)]


def _is_let_in(file: Path, patterns: Sequence[str]) -> bool:
    """Say whether the last pattern that matches the file or a folder above it lets it in."""
    is_let_in = True
    names = [str(file), *map(str, file.parents)]
    for pattern in patterns:
        wanted = pattern.removeprefix("!")
        anywhere = wanted.removeprefix("**/")
        if any(
            fnmatch.fnmatch(name, wanted) or (anywhere != wanted and fnmatch.fnmatch(name, anywhere))
            for name in names
        ):
            is_let_in = pattern.startswith("!")
    return is_let_in


class Container:
    """A stage played in a folder: absolute paths of the image lie below it, and its environment is empty."""

    def __init__(self, folder: Path, python: Path, inherited: Mapping[str, str]) -> None:
        """Begin with the base image's Python and with variables that reach the network from here."""
        self.folder = folder
        self._context = context()
        base = folder / "usr" / "local" / "bin"
        base.mkdir(parents=True)
        (base / "python").symlink_to(python)
        self._environment = {**inherited, "PATH": f"{base}:{os.defpath}", "HOME": os.environ["HOME"]}
        self._work = folder

    def path(self, text: str) -> str:
        """Return a text in which the image's own folders lie below ours."""
        return re.sub(
            r"(?<![\w/.])/(build|opt|usr/local|etc/groupwatch|var/lib/groupwatch)\b",
            rf"{self.folder}/\1",
            text,
        )

    def play(self, played: Stage) -> None:
        """Run a stage's instructions, without those that need a system of its own."""
        for one in played.instructions:
            if one.word == "WORKDIR":
                self._work = Path(self.path(one.text))
                self._work.mkdir(parents=True, exist_ok=True)
            elif one.word == "ENV":
                pairs = [part.split("=", 1) for part in one.text.split()]
                self._environment |= {name: self.path(value) for name, value in pairs}
            elif one.word == "COPY" and not one.text.startswith("--from"):
                *sources, target = one.text.split()
                self._copy(sources, target)
            elif one.word == "RUN" and not any(word in one.text for word in _NEEDS_A_SYSTEM):
                done = self.run(["sh", "-c", self.path(one.text)])
                assert done.returncode == 0, f"{one.text}\n{done.stdout}{done.stderr}"

    def run(self, command: Sequence[str], **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the stage's folder and environment."""
        return subprocess.run(
            [*command],
            cwd=self._work,
            env=self._environment | more,
            capture_output=True,
            text=True,
            check=False,
        )

    def entry(self, final: Stage, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the entry point of a final stage with arguments, in that stage's environment, until it ends."""
        command, environment = self._entry(final)
        return self.run([*command, *arguments], **environment)

    def start(self, final: Stage, log: Path) -> subprocess.Popen[bytes]:
        """Start the entry point of a final stage with the arguments that it has by default."""
        command, environment = self._entry(final)
        given = [self.path(one) for one in json.loads(final.last("CMD"))]
        with log.open("wb") as writing:
            return subprocess.Popen(
                [*command, *given], cwd=self._work, env=self._environment | environment,
                stdout=writing, stderr=writing,
            )  # fmt: skip

    def _entry(self, final: Stage) -> tuple[list[str], dict[str, str]]:
        environment = {name: self.path(value) for name, value in final.environment().items()}
        environment["PATH"] += f":{os.environ['PATH']}"  # the system's Java lies where this machine has it
        entry = json.loads(final.last("ENTRYPOINT"))
        found = shutil.which(entry[0], path=environment["PATH"])
        assert found is not None, f"{entry[0]} is not on the path"
        return [found, *entry[1:]], environment

    def _copy(self, sources: Sequence[str], target: str) -> None:
        for source in sources:
            for file in self._context:
                if file == Path(source) or Path(source) in file.parents:
                    self._copy_one(file, Path(source), target)

    def _copy_one(self, file: Path, source: Path, target: str) -> None:
        place = self._work / self.path(target)
        is_folder = (ROOT / source).is_dir()
        whole = (
            place / file.relative_to(source)
            if is_folder
            else place / file.name
            if target.endswith("/")
            else place
        )
        whole.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, whole)
