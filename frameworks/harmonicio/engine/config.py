"""Configuration of master and worker: defaults, then a file, then the environment, then flags; checked before anything starts."""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import yaml
from msgspec import Meta, Struct, field

from frameworks.harmonicio.engine.errors import ConfigError
from frameworks.harmonicio.engine.tls import server_context

PREFIX = "HARMONICIO_"
Port = Annotated[int, Meta(ge=0, le=65535)]
Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Tokens(Struct, frozen=True, forbid_unknown_fields=True):
    """What each role must show; without any, only the network decides who may talk to whom: keep it on loopback."""

    operator: str = ""
    worker: str = ""
    pe: str = ""
    connector: str = ""

    @property
    def any(self) -> bool:
        """Whether a token is set at all."""
        return bool(self.operator or self.worker or self.pe or self.connector)

    @property
    def missing(self) -> list[str]:
        """The roles that have none."""
        return [role for role in self.__struct_fields__ if not getattr(self, role)]


class MasterConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Of a master."""

    name: str = "master"
    host: str = "127.0.0.1"
    """address to listen at; loopback unless told otherwise"""
    port: Port = 8080
    data_port: Port = 8090
    tokens: Tokens = Tokens()
    tls: str | None = None
    """folder of certificates (trust), for mutual TLS on every port; plain when left out"""
    compat: Literal["auto", "on", "off"] = "auto"
    """the old wire, which knows neither tokens nor TLS: on, off, or on as long as neither is set"""
    state: str | None = None
    """folder of the journal and of what was submitted; nothing outlives the master when left out"""
    spill: str | None = None
    """folder for queued messages beyond `memory_bytes` where there is no `state`; emptied at each start"""
    sync: bool = True
    """whether a message is acknowledged only when the disk has it; otherwise when the kernel has"""
    queue_messages: Positive = 10**7
    queue_bytes: Positive = 4 * 10**9
    memory_bytes: Positive = 256 * 2**20
    """of queued messages in memory; the others are on the disk only (state or spill), and without one refused"""
    message_bytes: Positive = 128 * 2**20
    """the largest message"""
    requests_per_second: Positive = 5000
    """of one address, to the control plane"""
    pe_seconds: Seconds = 5.0
    worker_seconds: Seconds = 15.0
    lease_seconds: Seconds = 10.0
    irm: Literal["on", "off"] = "off"
    irm_profile: Literal["paper", "shipped"] = "paper"
    irm_fit: Literal["strict", "leq"] = "leq"

    @property
    def old_wire(self) -> bool:
        """Whether the old wire is spoken."""
        return self.compat == "on" or (self.compat == "auto" and not self.tokens.any and self.tls is None)


class WorkerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Of a worker."""

    name: str = "auto"
    """auto = the host's name"""
    host: str = "127.0.0.1"
    port: Port = 8081
    external_host: str = ""
    """the address under which others reach this worker's PEs; `host` when left out"""
    master_host: str = "127.0.0.1"
    master_port: Port = 8080
    tokens: Tokens = Tokens()
    tls: str | None = None
    compat: Literal["auto", "on", "off"] = "auto"
    runtime: Literal["process", "docker"] = "process"
    docker_socket: str = "/var/run/docker.sock"
    allow: tuple[str, ...] = ()
    """images that may be started; * stands for anything. Nothing else is ever started"""
    data_ports: tuple[Port, Port] = (9000, 9100)
    """first and last port of PEs; the last is not used. (0, 0) = any that is free"""
    most_pes: Positive = 64
    cpu: Annotated[float, Meta(gt=0, le=1)] | None = None
    """share of the worker's CPU that a PE gets when the request names none"""
    memory_bytes: Positive | None = None
    """that a PE gets"""
    report_seconds: Seconds = 1.0
    idle_seconds: Seconds = 60.0
    """after which a volatile PE leaves"""
    message_bytes: Positive = 128 * 2**20
    logs: str | None = None
    """folder of the PEs' logs"""

    @property
    def old_wire(self) -> bool:
        """Whether the old wire is spoken."""
        return self.compat == "on" or (self.compat == "auto" and not self.tokens.any and self.tls is None)

    @property
    def reached_at(self) -> str:
        """Under which others reach it."""
        return self.external_host or self.host


Config = TypeVar("Config", MasterConfig, WorkerConfig)


def read_config(
    kind: type[Config], file: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any]
) -> Config:
    """The configuration of that kind; raises ConfigError with the name, the value and what is allowed."""
    values: dict[str, Any] = _from_file(file) if file is not None else {}
    names = {one.name for one in msgspec.structs.fields(kind)}
    for name in names - {"tokens"}:
        if (text := environment.get(PREFIX + name.upper())) is not None:
            values[name] = text.split(",") if name in ("allow", "data_ports") else text
    for role in ("operator", "worker", "pe", "connector"):
        if (token := environment.get(f"{PREFIX}TOKEN_{role.upper()}")) is not None:
            values["tokens"] = {**values.get("tokens", {}), role: token}
    values.update({name: value for name, value in flags.items() if value is not None})
    unknown = sorted(set(values) - names)
    if unknown:
        near = difflib.get_close_matches(unknown[0], names, 1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(sorted(names))}"
        raise ConfigError(f"{file or 'configuration'}: there is no setting {unknown[0]!r}{hint}")
    try:
        config = msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"{file or 'configuration'}: {problem}") from None
    _check_tls(config)
    if isinstance(config, MasterConfig) and config.state is not None and config.spill is not None:
        raise ConfigError("a master with a state keeps its queue there; leave spill out")
    return config


def _from_file(file: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load(file.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise ConfigError(f"{file} cannot be read: {' '.join(str(problem).split())}") from None
    if not isinstance(found, dict | None):
        raise ConfigError(f"{file} is not a mapping of settings")
    return found or {}


def _check_tls(config: MasterConfig | WorkerConfig) -> None:
    """Who listens to the network needs every token or certificates; certificates are looked at before anything starts."""
    if config.tls is not None:
        server_context(config.tls)
        if config.old_wire:
            raise ConfigError("the old wire knows no TLS; leave compat or tls out")
        if isinstance(config, WorkerConfig) and config.runtime == "docker":
            raise ConfigError("PEs in containers do not see the certificates; TLS is for the process runtime")
    elif (
        config.host not in _LOOPBACK and (missing := config.tokens.missing) and not os.environ.get(PREFIX + "INSECURE")
    ):
        raise ConfigError(
            f"listening at {config.host} needs tokens (there is none of: {', '.join(missing)}), tls, or {PREFIX}INSECURE=1"
        )


class PeConfig(Struct, frozen=True, kw_only=True):
    """Of a PE: what its worker puts into its environment, by the names of the old wire as far as they go."""

    c_name: str
    spec: str
    host: str
    """where it listens"""
    node_addr: str
    """where others reach it"""
    port: int
    """where it listens: in a container, the port inside it"""
    reached_port: int | None = None
    """where others reach it; `port` when left out"""
    master_host: str
    master_port: int
    id: str
    worker: str
    token: str = ""
    connector_token: str = ""
    tls: str | None = None
    compat: bool = True
    idle_seconds: float | None = None
    message_bytes: int = 128 * 2**20
    settings: dict[str, Any] = field(default_factory=dict)


def read_pe_config(environment: Mapping[str, str]) -> PeConfig:
    """What a worker told; raises ConfigError when something is missing."""
    try:
        return PeConfig(
            c_name=environment["HDE_NODE_NAME"],
            spec=environment["HARMONICIO_FUNCTION"],
            host=environment.get("HARMONICIO_LISTEN", "127.0.0.1"),
            node_addr=environment["HDE_NODE_ADDR"],
            port=int(environment["HDE_NODE_DATA_PORT"]),
            reached_port=int(environment.get("HDE_NODE_PORT") or environment["HDE_NODE_DATA_PORT"]),
            master_host=environment["HDE_MASTER_ADDR"],
            master_port=int(environment["HDE_MASTER_PORT"]),
            id=environment["HOSTNAME"][:12],
            worker=environment.get("HARMONICIO_WORKER", ""),
            token=environment.get("HARMONICIO_TOKEN_PE", ""),
            connector_token=environment.get("HARMONICIO_TOKEN_CONNECTOR", ""),
            tls=environment.get("HARMONICIO_TLS"),
            compat=environment.get("HARMONICIO_COMPAT", "on") == "on",
            idle_seconds=float(environment["HDE_IDLE_TIMEOUT"]) if "HDE_IDLE_TIMEOUT" in environment else None,
            message_bytes=int(environment.get("HARMONICIO_MESSAGE_BYTES", 128 * 2**20)),
            settings=msgspec.json.decode(environment.get("HARMONICIO_SETTINGS", "{}")),
        )
    except KeyError as problem:
        raise ConfigError(f"the environment has no {problem.args[0]}; a PE is started by a worker") from None
    except (ValueError, msgspec.DecodeError) as problem:
        raise ConfigError(f"the environment of this PE cannot be read: {problem}") from None
