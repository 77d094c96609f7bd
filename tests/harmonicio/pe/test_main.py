"""The process of a PE, by its exit code."""

import json
import os
import resource
import socket
import subprocess
import sys

from processes import HERE, PE_ENVIRONMENT, free_port


def end_of_pe(folder, *, port, limit=None, **more):
    """Start a PE that ends by itself, with more variables."""
    environment = {
        **os.environ,
        **PE_ENVIRONMENT,
        "HDE_NODE_DATA_PORT": str(port),
        "HARMONICIO_FUNCTION": "pe_functions:Record",
        "HARMONICIO_SETTINGS": json.dumps({"folder": str(folder)}),
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": str(HERE),
        **more,
    }
    command = [sys.executable, "-m", "frameworks.harmonicio.engine.pe.main"]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False, preexec_fn=limit
    )


def test_a_pe_whose_port_was_taken_ends_before_its_function_is_made(tmp_path):
    """The function would tell others that the PE runs; the master starts another PE."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        ended = end_of_pe(tmp_path, port=other.getsockname()[1])
    assert ended.returncode == 2
    assert "no socket at 127.0.0.1:" in ended.stderr
    assert not list(tmp_path.iterdir())


def test_a_pe_that_may_not_start_a_thread_says_so_in_one_line(tmp_path):
    """Its address space is smaller than the stack of one thread; the master starts another PE."""

    def limit():
        resource.setrlimit(resource.RLIMIT_STACK, (2**40, 2**40))  # which glibc takes for the stack of each thread
        resource.setrlimit(resource.RLIMIT_AS, (2**39, 2**39))

    ended = end_of_pe(tmp_path, port=free_port(), limit=limit)
    assert ended.returncode == 3
    assert "can't start new thread: the limit of memory or of processes is too low" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_pe_that_may_open_no_more_files_says_so_in_one_line(tmp_path):
    """The campaign found a traceback: there was no number left for its own sockets; the master starts another PE."""

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6))

    ended = end_of_pe(tmp_path, port=free_port(), limit=limit)
    assert ended.returncode == 2
    assert "Too many open files" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_pe_without_its_certificate_says_so_in_one_line(tmp_path):
    """The folder of its settings is not there."""
    ended = end_of_pe(tmp_path, port=free_port(), HARMONICIO_TLS=str(tmp_path / "none"))
    assert ended.returncode == 1
    assert "none needs certificate.pem" in ended.stderr
    assert "Traceback" not in ended.stderr
