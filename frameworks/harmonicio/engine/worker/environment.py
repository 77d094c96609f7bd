"""The request for a PE, and the environment that passes it on: all names that a PE of any era reads."""

from pathlib import Path
from typing import Any

from msgspec import Struct

from frameworks.harmonicio.engine.config import WorkerConfig
from frameworks.harmonicio.engine.wire.control_messages import check_names


class CreateRequest(Struct, frozen=True, kw_only=True):
    """The body of a request for PEs; `volatile` and `cpu_share` are of the IRM era, those below them are ours."""

    c_name: str
    num: int = 1
    volatile: bool = False
    cpu_share: float | None = None
    image: str = ""
    memory_bytes: int | None = None
    settings: dict[str, Any] = {}

    def __post_init__(self) -> None:
        """Raise ValueError for names that no environment can carry, which msgspec makes a ValidationError."""
        check_names(self.c_name, self.image)


def pe_environment(request: CreateRequest, config: WorkerConfig, port: int, rest_port: int) -> dict[str, str]:
    """Return the environment of a PE.

    Args:
        request: what was requested.
        config: of this worker.
        port: port at which others reach the PE.
        rest_port: port of the worker's control plane.
    """
    environment = {
        "HDE_NODE_NAME": request.c_name,
        "HDE_NODE_ADDR": config.reached_at,
        "HDE_NODE_DATA_PORT": "80",
        "HDE_NODE_PORT": str(port),
        "HDE_MASTER_ADDR": config.master_host,
        "HDE_MASTER_PORT": str(config.master_port),
        "HDE_STD_IDLE_TIME": "5",
        "HDE_TOKEN": "None",
        "HDE_NODE_REST_PORT": str(rest_port),
        "HARMONICIO_LISTEN": config.host,
        "HARMONICIO_WORKER": f"{config.reached_at}:{rest_port}",
        "HARMONICIO_COMPAT": "on" if config.legacy_protocol else "off",
        "HARMONICIO_MESSAGE_BYTES": str(config.message_bytes),
    }
    if config.tls is not None:
        environment["HARMONICIO_TLS"] = str(Path(config.tls).resolve())
    if config.tokens.pe:
        environment["HARMONICIO_TOKEN_PE"] = config.tokens.pe
    if config.tokens.connector:
        environment["HARMONICIO_TOKEN_CONNECTOR"] = config.tokens.connector
    if request.volatile:
        environment["HDE_IDLE_TIMEOUT"] = str(int(config.idle_seconds))
    return environment
