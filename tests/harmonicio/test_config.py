"""The configuration is validated before anything starts."""

import pytest

from frameworks.harmonicio.engine.config import MasterConfig, WorkerConfig, read_config
from frameworks.harmonicio.engine.errors import ConfigError, RefusedError
from frameworks.harmonicio.engine.worker.ports import PortRange


def test_flags_override_the_environment_which_overrides_the_file(tmp_path):
    """Defaults come last."""
    file = tmp_path / "master.yaml"
    file.write_text("port: 1\ndata_port: 2\nname: file\n")
    config = read_config(
        MasterConfig, file, {"HARMONICIO_DATA_PORT": "3", "HARMONICIO_NAME": "environment"}, {"name": "flag"}
    )
    assert (config.port, config.data_port, config.name, config.host) == (1, 3, "flag", "127.0.0.1")


def test_tokens_come_from_the_environment():
    """With any token the legacy protocol is off."""
    config = read_config(WorkerConfig, None, {"HARMONICIO_TOKEN_WORKER": "w", "HARMONICIO_ALLOW": "a,b"}, {})
    assert (config.tokens.worker, config.legacy_protocol, config.allow) == ("w", False, ("a", "b"))


@pytest.mark.parametrize(
    ("text", "says"),
    [("prot: 1", "did you mean 'port'"), ("port: x", "port"), ("port: 70000", "port"), ("- a", "not a mapping"),
     ("{", "cannot be read"),
     ("irm: maybe", "irm"), ("host: 0.0.0.0", "needs tokens"), ("tokens: {opertor: x}", "opertor")],
)  # fmt: skip
def test_a_wrong_setting_is_an_error_of_one_line(tmp_path, text, says):
    """The error has the name of the setting."""
    file = tmp_path / "master.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=says) as caught:
        read_config(MasterConfig, file, {}, {})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "says"),
    [({"pe_user": "no-such-user"}, "no-such-user"), ({"pe_user": "nobody", "runtime": "docker"}, "process runtime")],
)
def test_a_user_that_pes_cannot_have_is_refused(flags, says):
    """Before anything starts; without root, every one is."""
    with pytest.raises(ConfigError, match=says):
        read_config(WorkerConfig, None, {}, flags)


def test_ports_are_given_again_and_an_empty_range_is_refused():
    """The end of the range is exclusive."""
    first = PortRange(0, 0, "127.0.0.1").take()
    ports = PortRange(first, first + 1, "127.0.0.1")
    assert ports.take() == first
    with pytest.raises(RefusedError, match="no port is free"):
        ports.take()
    ports.give_back(first)
    assert ports.take() == first


@pytest.mark.parametrize(
    ("text", "irm", "compat"), [("irm: on\ncompat: off", "on", "off"), ("compat: on", "off", "on")]
)
def test_on_and_off_need_no_quotes(tmp_path, text, irm, compat):
    """YAML reads them as booleans."""
    file = tmp_path / "master.yaml"
    file.write_text(text)
    config = read_config(MasterConfig, file, {}, {})
    assert (config.irm, config.compat) == (irm, compat)


@pytest.mark.parametrize("token", ["secret\n", "a\tb", "é", " a", "a\0"])
def test_a_token_that_no_header_can_carry_is_refused(token):
    """The error names its role, not the token."""
    with pytest.raises(ConfigError, match="tokens: that of worker") as caught:
        read_config(WorkerConfig, None, {"HARMONICIO_TOKEN_WORKER": token}, {})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "says"),
    [({"queue_bytes": 1000}, "queue_bytes is 1000, but at least 67108864"),
     ({"memory_bytes": 1000}, "memory_bytes is 1000, but at least 67108864"),
     ({"queue_bytes": 1000, "message_bytes": 1001, "state": "s"}, "at least 1001")],
)  # fmt: skip
def test_a_queue_that_would_never_give_credit_is_refused(flags, says):
    """The error has the least that is allowed."""
    with pytest.raises(ConfigError, match=says):
        read_config(MasterConfig, None, {}, flags)


def test_a_small_memory_is_allowed_with_a_folder():
    """Bodies are on the disk then; a small queue is allowed with small messages."""
    flags = {"memory_bytes": 1, "queue_bytes": 1000, "message_bytes": 1000, "spill": "s"}
    assert read_config(MasterConfig, None, {}, flags).memory_bytes == 1


@pytest.mark.parametrize("ports", ["9100,9000", "9000,9000", "0,9000"])
def test_a_range_without_ports_is_refused(ports):
    """The error has the range."""
    with pytest.raises(ConfigError, match=f"data_ports {ports} has no port"):
        read_config(WorkerConfig, None, {}, {"data_ports": ports.split(",")})
