"""The command `harmonicio`. Only this module writes to stdout or exits."""

import asyncio
import csv
import json
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frameworks.harmonicio.engine.errors import ConfigError, HarmonicError

if TYPE_CHECKING:  # each command imports what it needs, so that --help stays fast
    from contextlib import AbstractAsyncContextManager

    from frameworks.harmonicio.engine.operator_client import OperatorClient

app = typer.Typer(
    name="harmonicio",
    help="Stream messages from connectors to processing engines (PEs), peer to peer.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings in YAML; flags and HARMONICIO_* override it.")
]
MasterAddress = Annotated[
    str, typer.Option("--master", metavar="HOST:PORT", help="The master's control plane.", envvar="HARMONICIO_MASTER")
]
Token = Annotated[str, typer.Option("--token", help="The operator's token.", envvar="HARMONICIO_TOKEN_OPERATOR")]
TlsFolder = Annotated[
    str | None,
    typer.Option("--tls", metavar="FOLDER", help="Folder of certificates for mutual TLS.", envvar="HARMONICIO_TLS"),
]
DEFAULT_MASTER = "127.0.0.1:8080"
_MAX_DIGITS = 5


@app.command(epilog="Example:  harmonicio master --state /var/lib/harmonicio --irm on")
def master(
    *,
    config: ConfigFile = None,
    host: Annotated[str | None, typer.Option(help="Address to listen at; loopback when left out.")] = None,
    port: Annotated[int | None, typer.Option(help="Port of the control plane.")] = None,
    data_port: Annotated[int | None, typer.Option(help="Port of connectors and of the queue.")] = None,
    state: Annotated[
        str | None, typer.Option(help="Folder of the journal; without one, nothing outlives the master.")
    ] = None,
    spill: Annotated[
        str | None, typer.Option(help="Folder for queued messages that do not fit into memory, without --state.")
    ] = None,
    tls: TlsFolder = None,
    compat: Annotated[str | None, typer.Option(help="The legacy protocol: auto, on or off.")] = None,
    irm: Annotated[str | None, typer.Option(help="The resource manager: on or off.")] = None,
    irm_profile: Annotated[str | None, typer.Option(help="Its published parameters: paper or shipped.")] = None,
    irm_fit: Annotated[str | None, typer.Option(help="First-Fit as published (strict), or with <= (leq).")] = None,
) -> None:
    """Run the master."""
    from frameworks.harmonicio.engine.config import MasterConfig, read_config
    from frameworks.harmonicio.engine.master.service import run_master

    flags = {"host": host, "port": port, "data_port": data_port, "state": state, "spill": spill, "tls": tls,
    "compat": compat,
             "irm": irm, "irm_profile": irm_profile, "irm_fit": irm_fit}  # fmt: skip
    chosen = read_config(MasterConfig, config, os.environ, flags)
    _serve("master", run_master(chosen), f"{chosen.host}:{chosen.port}")


@app.command(epilog="Example:  harmonicio worker --allow 'python:mymodule:*'")
def worker(
    *,
    config: ConfigFile = None,
    host: Annotated[str | None, typer.Option(help="Address to listen at; loopback when left out.")] = None,
    port: Annotated[int | None, typer.Option(help="Port of the control plane.")] = None,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help=f"The master; {DEFAULT_MASTER} when left out.", envvar="HARMONICIO_MASTER"
        ),
    ] = None,
    tls: TlsFolder = None,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="IMAGE", help="An image that may run here; * matches anything.")
    ] = None,
    runtime: Annotated[str | None, typer.Option(help="Runtime of PEs: process or docker.")] = None,
    data_ports: Annotated[
        str | None, typer.Option(metavar="FIRST,END", help="Ports of PEs; 0,0 = any free port.")
    ] = None,
    logs: Annotated[str | None, typer.Option(help="Folder of the PEs' logs.")] = None,
) -> None:
    """Run a worker."""
    from frameworks.harmonicio.engine.config import WorkerConfig, read_config
    from frameworks.harmonicio.engine.worker.service import run_worker

    flags: dict[str, Any] = {"host": host, "port": port, "runtime": runtime, "logs": logs, "allow": allow, "tls": tls,
                             "data_ports": data_ports.split(",") if data_ports else None}  # fmt: skip
    if master is not None:
        flags["master_host"], flags["master_port"] = _address(master)
    chosen = read_config(WorkerConfig, config, os.environ, flags)
    _serve("worker", run_worker(chosen), f"{chosen.host}:{chosen.port}")


@app.command(epilog="Example:  harmonicio submit images --image python:mymodule:count --num 2")
def submit(
    stream: Annotated[str, typer.Argument(help="Name of the stream.")],
    *,
    image: Annotated[str, typer.Option(help="Image of its PEs; the stream's name when left out.")] = "",
    num: Annotated[int, typer.Option(help="Number of PEs.")] = 1,
    cpu: Annotated[float | None, typer.Option(help="Share of a worker's CPU for each PE.")] = None,
    memory: Annotated[int | None, typer.Option(help="Memory limit of each PE, in bytes.")] = None,
    settings: Annotated[str, typer.Option(metavar="JSON", help="Settings for the class of the function.")] = "{}",
    master: MasterAddress = DEFAULT_MASTER,
    token: Token = "",
    tls: TlsFolder = None,
) -> None:
    """Set the PEs of a stream; those that end are started again."""
    try:
        given = json.loads(settings)
    except ValueError as error:
        raise ConfigError(f"--settings is not JSON: {error}") from None
    body = {"c_name": stream, "num": num, "image": image, "cpu_share": cpu, "memory_bytes": memory, "settings": given}
    answer = _operator(master, token, tls).submit(
        {key: value for key, value in body.items() if value not in (None, "")}
    )
    print(f"{answer['c_name']}: {answer['num']} PEs are wanted")


@app.command(epilog="Example:  harmonicio stop images")
def stop(
    stream: Annotated[str, typer.Argument(help="Name of the stream; or, with --pe, the id of a PE.")],
    *,
    pe: Annotated[bool, typer.Option("--pe", help="Stop one PE only; another is started in its place.")] = False,
    purge: Annotated[bool, typer.Option("--purge", help="Delete its queued messages, too.")] = False,
    master: MasterAddress = DEFAULT_MASTER,
    token: Token = "",
    tls: TlsFolder = None,
) -> None:
    """Drain and end the PEs of a stream."""
    operator = _operator(master, token, tls)
    if pe:
        operator.stop(stream)
        print(f"{stream} is draining")
        return
    answer = operator.withdraw(stream, purge=purge)
    print(
        f"{stream}: {answer['stopped']} PEs are draining" + (f", {answer['purged']} messages deleted" if purge else "")
    )


@app.command("list", epilog="Example:  harmonicio list")
def list_pes(*, master: MasterAddress = DEFAULT_MASTER, token: Token = "", tls: TlsFolder = None) -> None:
    """List the PEs."""
    for row in _operator(master, token, tls).status()["pes"]:
        stats = row["stats"]
        counts = f"processed {stats.get('processed', 0):.0f}  waiting {stats.get('waiting', 0):.0f}"
        print(f"{row['id']}  {row['state']:<9} {row['c_name']}  {row['worker']}  {counts}")


@app.command(epilog="Example:  harmonicio status --json")
def status(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    master: MasterAddress = DEFAULT_MASTER,
    token: Token = "",
    tls: TlsFolder = None,
) -> None:
    """Print the state of the system."""
    view = _operator(master, token, tls).status()
    if as_json:
        print(json.dumps(view, indent=2))
        return
    print(f"{view['name']}: {len(view['workers'])} workers, {len(view['pes'])} PEs, {len(view['leases'])} leases")
    for row in view["streams"]:
        print(f"{row['c_name']}: {row['pes']} of {row['wanted']} PEs, {row['queued']} queued {row['problem']}")


@app.command(epilog="Example:  harmonicio samples master.log > samples.csv")
def samples(log: Annotated[Path, typer.Argument(help="A master's log.")]) -> None:
    """Print the samples in a master's log as CSV: queue, leases, PEs and workers, each second."""
    from frameworks.harmonicio.engine.master_log import HEAD, read_rows

    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(HEAD)
    table.writerows(read_rows(log))


@app.command(epilog="Example:  harmonicio bench --seconds 3")
def bench(
    *,
    seconds: Annotated[float, typer.Option(help="Duration of each measurement.")] = 3.0,
    only: Annotated[
        str, typer.Option(metavar="SIZES", help="Message sizes in bytes, separated by commas.")
    ] = "100,10000,1000000,10000000",
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Measure the throughput from a connector to a no-op PE on loopback, and that of a bare socket pair."""
    from frameworks.harmonicio.engine.benchmark.figures import format_table, run_benchmark

    try:
        sizes = [int(size) for size in only.split(",")]
    except ValueError:
        raise ConfigError(f"{only!r} are not sizes in bytes, separated by commas") from None
    figures = run_benchmark(sizes, seconds, lambda text: print(text, file=sys.stderr))
    print(json.dumps(figures, indent=2) if as_json else format_table(figures))


def main() -> None:
    """Run the command, and exit with the code of its error."""
    try:
        app(standalone_mode=True)
    except HarmonicError as error:
        print(f"harmonicio: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)


def _serve(role: str, service: "AbstractAsyncContextManager[object]", where: str) -> None:
    from frameworks.harmonicio.engine.logs import is_exhausted, log_to_stderr
    from frameworks.harmonicio.engine.tasks import EXIT_CODE

    code = EXIT_CODE

    async def serve() -> None:
        nonlocal code
        await _serve_until_stopped(service)
        code = 0

    log_to_stderr(role)
    logger = logging.getLogger(__name__)
    logger.info("%s listens at %s", role, where)
    try:
        asyncio.run(serve())
    except (OSError, MemoryError, RuntimeError) as error:  # also of asyncio's own clean-up, which starts a thread
        if not is_exhausted(error):
            raise
        logger.error("this process ends: %r", error)  # noqa: TRY400  one line is enough
        sys.exit(code)


async def _serve_until_stopped(service: "AbstractAsyncContextManager[object]") -> None:
    """Serve until SIGTERM or SIGINT."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with service:
        await stopped.wait()


def _operator(address: str, token: str, tls: str | None) -> "OperatorClient":
    from frameworks.harmonicio.engine.operator_client import OperatorClient

    return OperatorClient(*_address(address), token, tls=tls)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or len(port) > _MAX_DIGITS or not 0 < int(port) < 65536:
        raise ConfigError(f"{text!r} is not an address; write host:port")
    return host.strip("[]"), int(port)


if __name__ == "__main__":
    main()
