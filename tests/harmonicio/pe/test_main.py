"""The process of a PE, by its exit code."""

import json
import os
import socket
import subprocess
import sys

from processes import HERE, PE_ENVIRONMENT


def test_a_pe_whose_port_was_taken_ends_before_its_function_is_made(tmp_path):
    """The function would tell others that the PE runs; the master starts another PE."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        environment = {
            **os.environ,
            **PE_ENVIRONMENT,
            "HDE_NODE_DATA_PORT": str(other.getsockname()[1]),
            "HARMONICIO_FUNCTION": "pe_functions:Record",
            "HARMONICIO_SETTINGS": json.dumps({"folder": str(tmp_path)}),
            "PYTHONPATH": str(HERE),
        }
        command = [sys.executable, "-m", "frameworks.harmonicio.engine.pe.main"]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "no socket at 127.0.0.1:" in ended.stderr
    assert not list(tmp_path.iterdir())
