"""The configuration of master, worker and PE, validated before anything starts.

Defaults are overridden by a file, that by the environment, and that by flags.
"""

import difflib
import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import yaml
from msgspec import Meta, Struct, field

from frameworks.harmonicio.engine.errors import ConfigError
from frameworks.harmonicio.engine.master.credit_policy import min_free_bytes
from frameworks.harmonicio.engine.tls import server_context

PREFIX = "HARMONICIO_"
Port = Annotated[int, Meta(ge=0, le=65535)]
Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]
_SWITCHES = {"compat", "irm"}
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Tokens(Struct, frozen=True, forbid_unknown_fields=True):
    """The secret of each role. Without tokens everybody who reaches a port is accepted: listen on loopback only."""

    operator: str = ""
    worker: str = ""
    pe: str = ""
    connector: str = ""

    @property
    def any(self) -> bool:
        """Return whether a token is set at all."""
        return bool(self.operator or self.worker or self.pe or self.connector)

    @property
    def missing(self) -> list[str]:
        """Return the roles without a token."""
        return [role for role in self.__struct_fields__ if not getattr(self, role)]


class MasterConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of a master."""

    name: str = "master"
    host: str = "127.0.0.1"
    """address to listen at"""
    port: Port = 8080
    data_port: Port = 8090
    tokens: Tokens = Tokens()
    tls: str | None = None
    """folder of certificates for mutual TLS on every port; plain TCP when left out"""
    compat: Literal["auto", "on", "off"] = "auto"
    """the legacy protocol, which has neither tokens nor TLS: on, off, or auto = on as long as neither is set"""
    state: str | None = None
    """folder of the journal and of the submitted streams; when left out, nothing outlives the master"""
    spill: str | None = None
    """folder for queued messages beyond `memory_bytes`, without `state`; emptied at each start"""
    sync: bool = True
    """whether a message is acknowledged only once it is on the disk; otherwise once the kernel has it"""
    queue_messages: Positive = 10**7
    queue_bytes: Positive = 4 * 10**9
    memory_bytes: Positive = 256 * 2**20
    """queued messages in memory; the others are on the disk only (state or spill), or refused without either"""
    message_bytes: Positive = 128 * 2**20
    """the largest message"""
    requests_per_second: Positive = 5000
    """requests of one address to the control plane"""
    pe_seconds: Seconds = 5.0
    worker_seconds: Seconds = 15.0
    lease_seconds: Seconds = 10.0
    irm: Literal["on", "off"] = "off"
    irm_profile: Literal["paper", "shipped"] = "paper"
    irm_fit: Literal["strict", "leq"] = "leq"

    @property
    def legacy_protocol(self) -> bool:
        """Return whether the legacy protocol is spoken."""
        return _speaks_legacy(self)


class WorkerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of a worker."""

    name: str = "auto"
    """auto = the name of the host"""
    host: str = "127.0.0.1"
    port: Port = 8081
    external_host: str = ""
    """address at which others reach this worker's PEs; `host` when left out"""
    master_host: str = "127.0.0.1"
    master_port: Port = 8080
    tokens: Tokens = Tokens()
    tls: str | None = None
    compat: Literal["auto", "on", "off"] = "auto"
    runtime: Literal["process", "docker"] = "process"
    docker_socket: str = "/var/run/docker.sock"
    allow: tuple[str, ...] = ()
    """images that may be started; * matches anything. Nothing else is ever started"""
    pe_user: str | None = None
    """user of the processes of PEs, for a worker that runs as root; the worker's own user when left out"""
    data_ports: tuple[Port, Port] = (9000, 9100)
    """first port of PEs, and the end of the range (exclusive). (0, 0) = any free port"""
    most_pes: Positive = 64
    cpu: Annotated[float, Meta(gt=0, le=1)] | None = None
    """share of the worker's CPU of a PE whose request names none"""
    memory_bytes: Positive | None = None
    """memory limit of a PE whose request names none"""
    report_seconds: Seconds = 1.0
    idle_seconds: Seconds = 60.0
    """time without messages after which a volatile PE ends"""
    message_bytes: Positive = 128 * 2**20
    requests_per_second: Positive = 200
    """of one address; twice as many may come at once"""
    logs: str | None = None
    """folder of the logs of PEs"""

    @property
    def legacy_protocol(self) -> bool:
        """Return whether the legacy protocol is spoken."""
        return _speaks_legacy(self)

    @property
    def reached_at(self) -> str:
        """Return the host at which others reach this worker."""
        return self.external_host or self.host


Config = TypeVar("Config", MasterConfig, WorkerConfig)


def _speaks_legacy(config: MasterConfig | WorkerConfig) -> bool:
    return config.compat == "on" or (config.compat == "auto" and not config.tokens.any and config.tls is None)


def read_config(
    kind: type[Config], file: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any]
) -> Config:
    """Return the configuration of a role.

    Args:
        kind: MasterConfig or WorkerConfig.
        file: YAML file; None for none.
        environment: variables; HARMONICIO_PORT sets `port`, HARMONICIO_TOKEN_WORKER the worker's token.
        flags: values of the command line; None where not given.

    Raises:
        ConfigError: a setting is unknown or wrong; the text has its name, its value and what is allowed.
    """
    values: dict[str, Any] = _from_file(file) if file is not None else {}
    for name in _SWITCHES & values.keys():
        if isinstance(values[name], bool):  # YAML's on and off
            values[name] = "on" if values[name] else "off"
    names = {one.name for one in msgspec.structs.fields(kind)}
    for name in names - {"tokens"}:
        if (text := environment.get(PREFIX + name.upper())) is not None:
            values[name] = text.split(",") if name in ("allow", "data_ports") else text
    for role in ("operator", "worker", "pe", "connector"):
        if (token := environment.get(f"{PREFIX}TOKEN_{role.upper()}")) is not None:
            values["tokens"] = {**_tokens_in(values, file), role: token}
    values.update({name: value for name, value in flags.items() if value is not None})
    unknown = sorted(map(str, set(values) - names))
    if unknown:
        near = difflib.get_close_matches(unknown[0], names, 1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(sorted(names))}"
        raise ConfigError(f"{file or 'configuration'}: there is no setting {unknown[0]!r}{hint}")
    try:
        config = msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file or 'configuration'}: {error}") from None
    _check_tokens(config.tokens)
    _check_tls(config)
    if isinstance(config, MasterConfig):
        _check_queue(config)
    else:
        _check_pes(config)
    return config


def _tokens_in(values: Mapping[str, Any], file: Path | None) -> dict[str, Any]:
    tokens = values.get("tokens") or {}
    if not isinstance(tokens, dict):
        raise ConfigError(f"{file}: tokens is a mapping of roles, not {type(tokens).__name__}")
    return tokens


def _from_file(file: Path) -> dict[str, Any]:
    try:
        settings = yaml.safe_load(file.read_text())
    except (OSError, ValueError, yaml.YAMLError) as error:  # ValueError: no UTF-8, a date or a number that is none
        raise ConfigError(f"{file} cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(settings, dict | None):
        raise ConfigError(f"{file} is not a mapping of settings")
    return settings or {}


def _check_tokens(tokens: Tokens) -> None:
    """Raise ConfigError for tokens that no HTTP header can carry unchanged."""
    for role in tokens.__struct_fields__:
        token: str = getattr(tokens, role)
        if not (token.isascii() and token.isprintable()) or token != token.strip():
            raise ConfigError(
                f"tokens: that of {role} has a line break, a space at an end, or another character than printable ASCII"
            )


def _check_queue(config: MasterConfig) -> None:
    """Raise ConfigError for two folders of the queue, and for limits with which it would never give credit."""
    if config.state is not None and config.spill is not None:
        raise ConfigError("a master with a state keeps its queue there; leave spill out")
    least = min_free_bytes(config.message_bytes)
    in_memory = config.state is None and config.spill is None
    for name in ("queue_bytes", "memory_bytes") if in_memory else ("queue_bytes",):
        if (size := getattr(config, name)) < least:
            raise ConfigError(
                f"{name} is {size}, but at least {least} with a message_bytes of {config.message_bytes}: "
                "nothing would ever be queued"
            )


def _check_pes(config: WorkerConfig) -> None:
    """Raise ConfigError for a user or for ports that PEs cannot have."""
    if config.pe_user is not None:
        _check_pe_user(config.pe_user, config.runtime)
    first, end = config.data_ports
    if (first, end) != (0, 0) and not 0 < first < end:
        raise ConfigError(f"data_ports {first},{end} has no port: the end is above the first; 0,0 stands for any port")


def _check_tls(config: MasterConfig | WorkerConfig) -> None:
    """Raise ConfigError for invalid certificates, and for a public address without every token or TLS."""
    if config.tls is not None:
        server_context(config.tls)
        if config.legacy_protocol:
            raise ConfigError("the legacy protocol knows no TLS; leave compat or tls out")
        if isinstance(config, WorkerConfig) and config.runtime == "docker":
            raise ConfigError("PEs in containers do not see the certificates; TLS is for the process runtime")
    elif (
        config.host not in _LOOPBACK and (missing := config.tokens.missing) and not os.environ.get(PREFIX + "INSECURE")
    ):
        lacking = ", ".join(missing)
        raise ConfigError(
            f"listening at {config.host} needs tokens (there is none of: {lacking}), tls, or {PREFIX}INSECURE=1"
        )


def _check_pe_user(name: str, runtime: str) -> None:
    """Raise ConfigError unless PEs can run as this user."""
    if runtime != "process":
        raise ConfigError("pe_user is for the process runtime; an image says itself which user its container has")
    if os.geteuid() != 0:
        raise ConfigError(f"only a worker of root can start PEs as {name!r}; leave pe_user out")
    try:
        pwd.getpwnam(name)
    except KeyError:
        raise ConfigError(f"pe_user: there is no user {name!r}; create one without a password and a home") from None


class PeConfig(Struct, frozen=True, kw_only=True):
    """The settings of a PE, which its worker puts into its environment; `HDE_*` are the legacy names."""

    c_name: str
    spec: str
    host: str
    """address to listen at"""
    node_addr: str
    """host at which others reach it"""
    port: int
    """port to listen at: in a container, the port inside it"""
    reached_port: int | None = None
    """port at which others reach it; `port` when left out"""
    master_host: str
    master_port: int
    id: str
    worker: str
    token: str = ""
    connector_token: str = ""
    tls: str | None = None
    legacy_protocol: bool = True
    idle_seconds: float | None = None
    message_bytes: int = 128 * 2**20
    settings: dict[str, Any] = field(default_factory=dict)


def read_pe_config(environment: Mapping[str, str]) -> PeConfig:
    """Return the settings that a worker passed; raises ConfigError when one is missing or wrong."""
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
            legacy_protocol=environment.get("HARMONICIO_COMPAT", "on") == "on",
            idle_seconds=float(environment["HDE_IDLE_TIMEOUT"]) if "HDE_IDLE_TIMEOUT" in environment else None,
            message_bytes=int(environment.get("HARMONICIO_MESSAGE_BYTES", 128 * 2**20)),
            settings=msgspec.json.decode(environment.get("HARMONICIO_SETTINGS", "{}")),
        )
    except KeyError as error:
        raise ConfigError(f"the environment has no {error.args[0]}; a PE is started by a worker") from None
    except (ValueError, msgspec.DecodeError) as error:
        raise ConfigError(f"the environment of this PE cannot be read: {error}") from None
