"""``groupwatch kafka up|down|status|archive``: the embedded cluster from the command line."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from streaming.devkit.kafka.archive import make_broker_archive
from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.devkit.kafka.plan import EmbeddedKafkaError, EmbeddedKafkaUsageError
from streaming.jars import DEFAULT_VERSIONS, JarError, JavaError

DATA_DIR = Path("kafka-data")
PORT = 9092

kafka_app = typer.Typer(help="An embedded Kafka cluster whose logs are shipped.", no_args_is_help=True)

_DataOption = Annotated[Path, typer.Option("--data", help="Folder with the cluster's data and logs.")]


def up(
    *,
    brokers: int | None = None,
    version: str | None = None,
    data: Path = DATA_DIR,
    port: int | None = None,
) -> EmbeddedKafka:
    """Starts the cluster in ``data`` and leaves it running; one that runs already is left alone.

    A folder that holds a cluster keeps its version, brokers and ports, and refuses others.  None
    stands for what is there, else for one broker of the default version on port 9092.

    Raises:
        EmbeddedKafkaUsageError: this cannot be asked for.
        EmbeddedKafkaError: it did not start.
        JarError: its jars cannot be had.
    """
    existing = EmbeddedKafka.existing(data)
    if existing is not None:
        _refuse_other_plan(existing, brokers, version, port)
    cluster = existing or EmbeddedKafka(
        data, brokers=brokers or 1, version=version or DEFAULT_VERSIONS["broker"], port=port or PORT
    )
    cluster.start()
    return cluster


def _refuse_other_plan(
    cluster: EmbeddedKafka, brokers: int | None, version: str | None, port: int | None
) -> None:
    plan = cluster.plan
    there = (len(plan.ports), plan.version, plan.ports[0])
    asked = (brokers, version, port)
    if all(wish is None or wish == fact for wish, fact in zip(asked, there, strict=True)):
        return
    raise EmbeddedKafkaUsageError(
        f"{cluster.data_dir} holds a cluster of {len(plan.ports)} broker(s) of Kafka {plan.version} "
        f"on port {plan.ports[0]}: ask for the same, or name another folder with --data."
    )


def down(*, data: Path = DATA_DIR) -> bool:
    """Stops the cluster in ``data``, and no other process; False if there is none."""
    cluster = EmbeddedKafka.existing(data)
    if cluster is None:
        return False
    cluster.stop()
    return True


def status(*, data: Path = DATA_DIR) -> dict[int, int | None] | None:
    """The process id of each broker of the cluster in ``data`` (None: stopped), or None without one."""
    cluster = EmbeddedKafka.existing(data)
    return {broker: cluster.pid(broker) for broker in cluster.broker_ids} if cluster else None


@kafka_app.command("up")
def up_command(
    brokers: Annotated[int | None, typer.Option(help="Brokers, 1 or 3; 1 for a new cluster.")] = None,
    version: Annotated[
        str | None, typer.Option(help=f"Kafka's version; {DEFAULT_VERSIONS['broker']} for a new cluster.")
    ] = None,
    data: _DataOption = DATA_DIR,
    port: Annotated[int | None, typer.Option(help=f"First broker's port; {PORT} for a new cluster.")] = None,
) -> None:
    """Start the cluster and leave it running."""
    try:
        cluster = up(brokers=brokers, version=version, data=data, port=port)
    except (EmbeddedKafkaError, JarError, JavaError) as error:
        Console(stderr=True).print(f"[red]{error}[/red]", soft_wrap=True)
        raise typer.Exit(2 if isinstance(error, EmbeddedKafkaUsageError) else 1) from error
    console = Console()
    console.print(f"Kafka {cluster.plan.version} is up: {cluster.bootstrap_servers}", soft_wrap=True)
    console.print(f"Their logs go to {cluster.plan.events_topic} and to {cluster.data_dir}", soft_wrap=True)


@kafka_app.command("down")
def down_command(data: _DataOption = DATA_DIR) -> None:
    """Stop the cluster; its data stays."""
    Console().print(
        "Kafka is down." if down(data=data) else f"There is no cluster in {data}.", soft_wrap=True
    )


@kafka_app.command("status")
def status_command(data: _DataOption = DATA_DIR) -> None:
    """Print which brokers run; exit 1 unless all run, with the log shipper if their version needs it."""
    console = Console()
    cluster = EmbeddedKafka.existing(data)
    if cluster is None:
        console.print(f"There is no cluster in {data}.", soft_wrap=True)
        raise typer.Exit(1)
    pids = {broker: cluster.pid(broker) for broker in cluster.broker_ids}
    for broker, pid in pids.items():
        address = f"127.0.0.1:{cluster.plan.ports[broker - 1]}"
        console.print(f"broker {broker} at {address}: {f'running, process {pid}' if pid else 'stopped'}")
    if cluster.lacks_shipper:
        console.print("the log shipper is stopped")
    if None in pids.values() or cluster.lacks_shipper:
        raise typer.Exit(1)


@kafka_app.command("archive")
def archive_command() -> None:
    """Archive the classes that a broker loads, once, so that brokers start faster; print the file."""
    try:
        file = make_broker_archive()
    except (EmbeddedKafkaError, JarError, JavaError) as error:
        Console(stderr=True).print(f"[red]{error}[/red]", soft_wrap=True)
        raise typer.Exit(1) from error
    Console().print(str(file), soft_wrap=True)
