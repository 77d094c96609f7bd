"""Text that is no text is an error of the connection or the request that has it, and of nothing else."""

import pytest
from crc32c import crc32c

from frameworks.harmonicio.engine.config import MasterConfig, read_config
from frameworks.harmonicio.engine.errors import ConfigError, ProtocolError
from frameworks.harmonicio.engine.wire.control_messages import Hello
from frameworks.harmonicio.engine.wire.frame import FrameKind, encode_header
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool, FrameReader
from frameworks.harmonicio.engine.wire.literal import read_literal


def test_a_control_message_that_is_not_utf_8_is_a_protocol_error():
    """Any other exception would end a PE: its one thread reads all connections."""
    body = b'{"role": "connector", "c_name": "\xff", "session": 1}'
    (frame,) = FrameReader(BufferPool(), 1000).feed(encode_header(FrameKind.HELLO, len(body), crc32c(body)) + body)
    with pytest.raises(ProtocolError, match="HELLO"):
        frame.decode_body(Hello)


@pytest.mark.parametrize("text", ['{"c_name": "\\ud800"}', '{"\\udfff": 1}', '["\\ud800"]'])
def test_half_a_character_is_refused(text):
    """A name with it could be stored, and then neither saved nor shown: every page of the master would fail."""
    with pytest.raises(ProtocolError, match="UTF-8"):
        read_literal(text)


@pytest.mark.parametrize("text", ["port: " + "9" * 5000, "name: 2001-99-99", "1: 2", "tokens: 3", "tokens: [a]"])
def test_a_wrong_file_of_settings_is_a_config_error(tmp_path, text):
    """One line, no traceback, with tokens in the environment, too."""
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError):
        read_config(MasterConfig, path, {"HARMONICIO_TOKEN_PE": "p"}, {})


def test_no_tokens_in_the_file_leave_those_of_the_environment(tmp_path):
    """`tokens:` with nothing behind it is an empty mapping."""
    path = tmp_path / "config.yaml"
    path.write_text("tokens:\n")
    assert read_config(MasterConfig, path, {"HARMONICIO_TOKEN_PE": "p"}, {}).tokens.pe == "p"
