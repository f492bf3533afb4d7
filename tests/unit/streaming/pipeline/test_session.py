"""Whose Spark settings count, and what is refused before Spark runs."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

import streaming
from streaming.jars import JarError
from streaming.pipeline import session
from streaming.pipeline.folders import CheckpointRefusedError

OLD_READER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
REMOTE = {"spark.master": "spark://127.0.0.2:7077"}


def test_ours_are_defaults_except_for_reading_at_all() -> None:
    """Everything can be set but what would make the internal topic silently empty."""
    chosen = session.settings({"spark.ui.enabled": True, OLD_READER: False}, {"spark.log.level": "INFO"})
    assert chosen["spark.ui.enabled"] == "true"
    assert chosen["spark.log.level"] == "INFO"
    assert chosen["spark.sql.session.timeZone"] == "UTC"
    assert chosen[OLD_READER] == "true"


def test_what_spark_was_given_wins_over_the_configuration() -> None:
    """A command line is typed for one run; the file stays as it is."""
    chosen = session.settings({"spark.master": "local[2]", "spark.executor.cores": 1}, REMOTE)
    assert (chosen["spark.master"], chosen["spark.executor.cores"]) == (REMOTE["spark.master"], "1")


def test_addresses_are_pinned_in_local_mode_only() -> None:
    """Executors elsewhere must reach the driver, and an address in the environment is somebody's choice."""
    pinned = ("spark.driver.host", "spark.driver.bindAddress")
    assert [session.settings({}, {}).get(one) for one in pinned] == ["127.0.0.1"] * 2
    assert not set(pinned) & session.settings({}, REMOTE).keys()
    assert not set(pinned) & session.settings({}, {}, environment={"SPARK_LOCAL_IP": "10.0.0.1"}).keys()
    assert session.settings({}, {"spark.driver.host": "10.0.0.1"})["spark.driver.host"] == "10.0.0.1"


def test_a_replaced_executor_gets_its_share_of_state() -> None:
    """State tasks do not wait for where their state was; somebody else's choice is kept."""
    name = "spark.locality.wait"
    assert session.settings({}, REMOTE)[name] == "0s"
    assert session.settings({name: "1s"}, REMOTE)[name] == "1s"
    assert name not in session.settings({}, {})


def test_executors_in_processes_of_their_own_compile_quickly() -> None:
    """Java's better compiler takes half of an executor's CPU; somebody else's choice is kept."""
    name = "spark.executor.extraJavaOptions"
    quick = "-XX:TieredStopAtLevel=1"
    serial_too = f"{quick} -XX:+NeverActAsServerClassMachine"
    for master, ours in ((REMOTE["spark.master"], quick), ("local-cluster[2,1,1024]", serial_too)):
        assert session.settings({}, {"spark.master": master})[name] == ours
    assert session.settings({name: "-Xss4m"}, REMOTE)[name] == "-Xss4m"
    assert name not in session.settings({}, {})


@pytest.mark.parametrize(
    ("master", "cores", "is_serial"),
    [
        ("spark://127.0.0.2:7077", "4", True),
        ("spark://127.0.0.2:7077", "5", False),
        ("spark://127.0.0.2:7077", None, False),  # all cores of its worker
        ("yarn", None, True),
        ("k8s://https://m", "8", False),
        ("local-cluster[1,8,1024]", None, False),
    ],
)
def test_executors_of_few_cores_collect_serially(master: str, cores: str | None, is_serial: bool) -> None:
    """As the driver's JVM does: with more cores one collecting thread would hold up too many others."""
    given = {"spark.master": master} | ({"spark.executor.cores": cores} if cores else {})

    options = session.settings({}, given)["spark.executor.extraJavaOptions"].split()

    assert ("-XX:+NeverActAsServerClassMachine" in options) is is_serial


def test_workers_are_forked_with_their_imports_where_these_are_from_the_start() -> None:
    """On a cluster our packages may come with the job, after the process that forks has started."""
    name = "spark.python.daemon.module"
    assert session.settings({}, {})[name] == "streaming.workers.daemon"
    assert name in session.settings({}, {}, environment={"SPARK_LOCAL_IP": "10.0.0.1"})
    assert name not in session.settings({}, REMOTE)
    assert name not in session.settings({}, {}, environment={"PYSPARK_GATEWAY_PORT": "1"})
    shipped = {session.ARCHIVE: "/a.tar.gz"}
    assert session.settings({}, REMOTE, environment=shipped)[name] == "streaming.workers.daemon"
    assert session.settings({name: "pyspark.daemon"}, REMOTE, environment=shipped)[name] == "pyspark.daemon"
    assert session.settings({name: "pyspark.daemon"}, {})[name] == "pyspark.daemon"


def test_a_users_jars_are_added_to_ours() -> None:
    """Executors get both; only a connector of the user's own keeps ours out."""
    assert session.settings({}, REMOTE, jars="/a.jar")["spark.jars"] == "/a.jar"
    theirs = session.settings({"spark.jars": "/login.jar"}, REMOTE, jars="/a.jar")
    assert theirs["spark.jars"] == "/login.jar,/a.jar"
    packages = {"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"}
    assert "spark.jars" not in session.settings(packages, REMOTE, jars="/a.jar")
    assert "spark.jars" not in session.settings({}, {}, jars="/a.jar"), "local: they are on the class path"


def test_the_archive_comes_beside_what_the_user_ships() -> None:
    """Executors find our packages first, and the user's archives and paths stay."""
    given = REMOTE | {"spark.archives": "/model.zip", "spark.executorEnv.PYTHONPATH": "/opt/lib"}
    chosen = session.settings({}, given, environment={session.ARCHIVE: "/a.tar.gz"})
    assert chosen["spark.archives"] == "/model.zip,/a.tar.gz#groupwatch-packages"
    assert chosen["spark.executorEnv.PYTHONPATH"] == "groupwatch-packages:/opt/lib"


@pytest.mark.parametrize(
    ("checkpoint", "is_plain"),
    [("./checkpoint", True), ("file:///x", True), ("hdfs://n/x", False), ("s3a://b", False)],
)
def test_plain_local_files_get_the_plain_file_manager(checkpoint: str, *, is_plain: bool) -> None:
    """The manager that needs no helper processes is for local files only."""
    name = "spark.sql.streaming.checkpointFileManagerClass"
    assert (name in session.settings({}, {}, checkpoint=checkpoint)) is is_plain


@pytest.mark.parametrize(
    ("given", "environment", "checkpoint", "is_ours"),
    [
        ({}, {}, "./checkpoint", True),
        ({}, {}, "s3a://b", False),
        (REMOTE, {}, "/nfs/checkpoint", False),
        ({}, {"PYSPARK_GATEWAY_PORT": "1"}, "./checkpoint", False),
    ],
)
def test_local_files_are_written_by_our_class_where_it_is(
    given: dict[str, str], environment: dict[str, str], checkpoint: str, *, is_ours: bool
) -> None:
    """Only the JVM that we start has it; executors elsewhere would not find it."""
    chosen = session.settings({}, given, checkpoint=checkpoint, environment=environment)
    assert ("spark.hadoop.fs.file.impl" in chosen) is is_ours


def test_state_tasks_are_chosen_here_in_local_mode_only() -> None:
    """On a cluster they follow from its cores; a number that somebody gave is kept in both."""
    name = "spark.sql.shuffle.partitions"
    assert session.settings({}, {"spark.master": "local[2]"})[name] == "2"
    assert name not in session.settings({}, REMOTE)
    assert session.settings({name: 3}, REMOTE)[name] == "3"


@pytest.mark.parametrize("checkpoint", ["./checkpoint", "/var/lib/groupwatch", "file:///srv/checkpoint"])
def test_a_checkpoint_on_a_local_disk_is_refused_on_a_cluster(checkpoint: str) -> None:
    """Each worker would have another folder of that name, and state would be lost in silence."""
    with pytest.raises(CheckpointRefusedError, match="checkpoint_is_shared: true"):
        session.refuse_unshared(REMOTE["spark.master"], checkpoint, is_shared=False)


@pytest.mark.parametrize(
    ("master", "checkpoint", "is_shared"),
    [
        ("local[2]", "./checkpoint", False),
        ("spark://m:7077", "/nfs/groupwatch", True),
        ("yarn", "hdfs://name/groupwatch", False),
    ],
)
def test_a_checkpoint_that_all_reach_is_accepted(master: str, checkpoint: str, *, is_shared: bool) -> None:
    """In one process, on a file system with a name, or where somebody says that the folder is shared."""
    session.refuse_unshared(master, checkpoint, is_shared=is_shared)


def test_whoever_waits_for_a_session_gets_it_once_it_has_started() -> None:
    """Jobs look at their topics meanwhile."""
    late, made = session.LateSession(), cast("SparkSession", object())
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(late)
        late.start(lambda: made)
        assert waiting.result() is made
    late.give_up()
    assert late() is made, "the end of the job changes nothing"


def test_without_a_session_nobody_waits_for_ever() -> None:
    """If Spark does not start, or the job ends before, the jobs' threads end."""

    def fail() -> SparkSession:
        raise JarError("no network")

    late = session.LateSession()
    with pytest.raises(JarError):
        late.start(fail)
    with pytest.raises(session.NoSessionError):
        late()


def test_workers_run_their_own_python_of_our_version() -> None:
    """Here it is ours with its packages; elsewhere a path of this machine would mean nothing."""
    own = f"python{sys.version_info.major}.{sys.version_info.minor}"
    assert session.worker_python({"spark.master": "local[2]"}) == sys.executable
    assert session.worker_python(REMOTE) == own
    assert session.worker_python(REMOTE | {"spark.pyspark.python": "/opt/python"}) == "/opt/python"


def test_started_by_path_nothing_of_ours_hides_pythons_own_modules(tmp_path: Path) -> None:
    """spark-submit starts a file, whose folder Python searches first."""
    package = Path(streaming.__file__).parent
    names = {path.stem for path in package.iterdir()}
    assert not names & sys.stdlib_module_names
    said = subprocess.run(
        [sys.executable, str(package / "__main__.py"), "check-config", "/nowhere.yaml"],
        cwd=tmp_path,
        env={"PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 2, said.stderr
    assert "nowhere.yaml" in said.stderr
