"""A standalone Spark cluster of processes: a master and workers, each on a loopback address of its own.

The workers run as another user, with a Spark and folders of their own, and see neither this checkout nor its
environment: nothing but the checkpoint's folder is shared with who submits.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyspark
import pytest

from streaming.devkit.kafka import free_ports
from tests.live.support.stage import await_that

USER = 65534
"""``nobody``, who owns nothing here."""
MASTER_HOST = "127.0.0.2"
ROOT = Path(__file__).resolve().parents[3]


def need_another_user() -> None:
    """Skip where workers cannot be shut out from our folders, or have no Python."""
    if os.geteuid() != 0:
        pytest.skip("only root can start workers as another user")
    if subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine forbids mount namespaces, so workers would see this checkout")
    if worker_python() is None:
        pytest.skip(f"no {own_python()} outside our own folders for the workers")


def own_python() -> str:
    """Return the name of our Python's minor version."""
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def worker_python() -> str | None:
    """Return the system's interpreter of our minor version."""
    return shutil.which(own_python(), path="/usr/local/bin:/usr/bin:/bin")


class SparkCluster:
    """The master and its workers; ends with the ``with``."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self.folder = Path(tempfile.mkdtemp(prefix="groupwatch-spark-"))
        self.folder.chmod(0o755)
        self.shared = self.folder / "shared"
        """The checkpoint's: who writes here shares a group, as on NFS."""
        self.port, self.web_port = free_ports(2, MASTER_HOST)
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self._master: subprocess.Popen[bytes] | None = None
        self._home = self.folder / "spark"

    @property
    def url(self) -> str:
        """The master's address."""
        return f"spark://{MASTER_HOST}:{self.port}"

    def __enter__(self) -> "SparkCluster":
        """Start the master."""
        shutil.copytree(Path(pyspark.__file__).parent, self._home, copy_function=_link, symlinks=True)
        self.shared.mkdir()
        os.chown(self.shared, os.getuid(), USER)
        self.shared.chmod(0o2770)
        options = ["--host", MASTER_HOST, "--port", str(self.port), "--webui-port", str(self.web_port)]
        self._master = self._start("master", MASTER_HOST, "org.apache.spark.deploy.master.Master", options)
        try:
            await_that(self._answers, f"the master answers (see {self.folder}/master.log)")
        except BaseException:
            self._master.kill()
            self._master.wait()
            raise
        return self

    def start_worker(self, host: str, cores: int = 1) -> None:
        """Start a worker and return when the master knows it."""
        options = ["--host", host, "--cores", str(cores), "--memory", "1g", "--webui-port", "0"]
        options += ["--work-dir", str(self.folder / host / "work"), self.url]
        self.workers[host] = self._start(host, host, "org.apache.spark.deploy.worker.Worker", options)
        await_that(lambda: host in self.alive(), f"{host} has registered (see {self.folder / host})")

    def kill_worker(self, host: str) -> None:
        """As a power cut would, but its executors end by themselves."""
        process = self.workers.pop(host)
        process.kill()
        process.wait()

    def pythons(self) -> set[tuple[int, str]]:
        """Return user and program of every Python under an executor."""
        return {(user, program) for user, program, _ in self._processes() if "python" in program}

    def commands(self) -> list[str]:
        """Return the command line of every executor and of every process under one."""
        return [command for _, _, command in self._processes()]

    def _processes(self) -> Iterator[tuple[int, str, str]]:
        """Yield user, program and command line of every executor and of every process under one."""
        for root in [root for host in self.workers for root in self.executors(host)]:
            for pid in [root, *(one.pid for one in below(root))]:
                with contextlib.suppress(psutil.Error):
                    one = psutil.Process(pid)
                    yield one.uids().real, one.exe(), " ".join(one.cmdline())

    def executors(self, host: str) -> list[int]:
        """Return the process ids of a host's executors."""
        wanted = {"org.apache.spark.executor.CoarseGrainedExecutorBackend", host}
        every = psutil.process_iter(["cmdline"])
        return [one.pid for one in every if wanted <= set(one.info["cmdline"] or ())]

    def kill_executor(self, host: str) -> None:
        """Kill the executor of a host, the first one where a replaced one has not ended yet."""
        os.kill(self.executors(host)[0], signal.SIGKILL)

    def _answers(self) -> bool:
        """Ask the master for its JSON; fails if it has ended."""
        assert self._master is None or self._master.poll() is None, (self.folder / "master.log").read_text()
        return self.described() is not None

    def described(self) -> Mapping[str, Any] | None:
        """Return the master's own JSON; None while it does not answer."""
        with contextlib.suppress(httpx.TransportError, ValueError):  # it begins with a page of HTML
            found: Mapping[str, Any] = httpx.get(f"http://{MASTER_HOST}:{self.web_port}/json/").json()
            return found
        return None

    def alive(self) -> dict[str, Mapping[str, Any]]:
        """Return the workers that the master holds for alive, by host."""
        told = self.described() or {"workers": []}
        return {one["host"]: one for one in told["workers"] if one["state"] == "ALIVE"}

    def _start(self, name: str, host: str, main: str, options: list[str]) -> subprocess.Popen[bytes]:
        own = self.folder / name
        own.mkdir(exist_ok=True)
        os.chown(own, USER, USER)
        hidden = " ".join(f"mount -t tmpfs -o mode=000 none '{one}' &&" for one in _hidden())
        who = f"setpriv --reuid {USER} --regid {USER} --clear-groups"
        command = f"{hidden} cd '{own}' && umask 002 && exec {who} '{self._home}/bin/spark-class' {main}"
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(own),
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": host,
            "SPARK_LOCAL_DIRS": str(own / "local"),
            "SPARK_DAEMON_MEMORY": "192m",
        }
        environment |= {one: os.environ[one] for one in ("JAVA_HOME",) if one in os.environ}
        with (self.folder / f"{name}.log").open("ab") as out:
            return subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", f'{command} "$@"', "sh", *options],
                env=environment,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def __exit__(self, *_: object) -> None:
        """End everything and remove what it left."""
        for host in list(self.workers):
            self.kill_worker(host)
            for pid in self.executors(host):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if self._master is not None:
            self._master.kill()
            self._master.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def below(pid: int) -> list[psutil.Process]:
    """Return the processes below one, all generations; none if it has ended."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _hidden() -> list[Path]:
    """Return the folders of who submits; one within another is hidden with that."""
    folders = {ROOT, Path(sys.prefix).resolve()}
    return sorted(one for one in folders if folders.isdisjoint(one.parents))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def told_by_driver(ui: str, what: str) -> Any:
    """Return what a driver's own API says of its application."""
    url = f"{ui}/api/v1/applications"
    with httpx.Client(timeout=60, follow_redirects=True) as client:
        (application,) = client.get(url).json()
        return client.get(f"{url}/{application['id']}/{what}").json()


def tasks_by_host(ui: str) -> dict[str, dict[str, int]]:
    """Return tasks and their time by the executors' hosts, dead executors too, as the driver tells them."""
    found: dict[str, dict[str, int]] = {}
    for one in told_by_driver(ui, "allexecutors"):
        if one["id"] != "driver":
            host = found.setdefault(one["hostPort"].split(":")[0], {"tasks": 0, "ms": 0, "failed": 0})
            host["tasks"] += one["completedTasks"]
            host["ms"] += one["totalDuration"]
            host["failed"] += one["failedTasks"]
    return found
