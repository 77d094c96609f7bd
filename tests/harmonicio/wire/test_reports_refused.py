"""Values that JSON cannot express are refused, and end no process."""

import json

import pytest
from legacy_peers import push_raw, request
from processes import free_port, wait_until

from frameworks.harmonicio.engine.errors import ProtocolError
from frameworks.harmonicio.engine.wire.literal import read_literal


@pytest.mark.parametrize(
    "text",
    ["b'1'", "{1}", "1j", "...", "{1: 2}", "{b'a': 1}", "{None: 1}", "{'a': [({1},)]}", "NaN", "-Infinity", "1e999",
     str(2**64), str(-(2**63) - 1), "0x" + "f" * 10_000, "{'a': 1" + "0" * 400 + "}"],
)  # fmt: skip
def test_values_that_json_cannot_express_are_refused(text):
    """Numbers beyond 64 bits are, too, in one line."""
    with pytest.raises(ProtocolError) as caught:
        read_literal(text)
    assert len(str(caught.value)) < 132


def test_values_that_json_can_express_are_read():
    """The largest numbers are read, and a tuple is a list."""
    text = f"{{'a': [None, True, 1.5, {2**64 - 1}, {-(2**63)}], 'b': (1, 'x')}}"
    assert json.loads(json.dumps(read_literal(text))) == {"a": [None, True, 1.5, 2**64 - 1, -(2**63)], "b": [1, "x"]}


@pytest.mark.real
def test_a_report_that_cannot_be_written_does_not_end_the_master(cluster):
    """The master answers 4xx, and logs samples as before."""
    cluster.start_master()
    push_raw("127.0.0.1", cluster.data_port, b"003imgfirst")
    reports = [
        "{'node_addr': 'x', 'cpu': b'1'}",
        "{'node_addr': 'x', 'cpu': 1" + "0" * 400 + "}",
        "{'node_addr': '..'}",
    ]
    assert [request(cluster.port, "PUT", "/status?token=None", report)[0] for report in reports] == [400, 400, 409]
    asked_for = "{'c_name': 'img', 'settings': {'a': {1}}}"
    assert request(cluster.port, "POST", "/v1/streams", asked_for)[0] == 409
    before = cluster.log().count("sample {")
    wait_until(lambda: cluster.log().count("sample {") > before + 1, "the next samples")
    assert cluster.processes["master"].poll() is None
    assert cluster.operator.status()["workers"] == []


@pytest.mark.real
def test_a_port_is_given_again_after_a_failed_start(cluster):
    """After settings that no process can be given, and invalid ones, the worker's only port is still free."""
    port = free_port()
    cluster.start_master()
    cluster.start_worker("--data-ports", f"{port},{port + 1}")
    create = "/docker?token=None&command=create"
    asked_for = {"c_name": "s", "image": "python:pe_functions:Record", "settings": {"folder": str(cluster.numbers)}}
    too_long = {**asked_for, "settings": {"folder": "x" * 200_000}}
    assert request(cluster.worker_port, "POST", create, json.dumps(too_long))[0] == 400
    assert request(cluster.worker_port, "POST", create, "{'c_name': 's', 'settings': {'a': {1}}}")[0] == 400
    assert request(cluster.worker_port, "POST", create, json.dumps(asked_for))[0] == 200


@pytest.mark.real
def test_a_name_with_a_nul_is_refused(running_cluster):
    """No process can be given it; master and worker say so in one line, and nothing is wanted."""
    asked_for = json.dumps({"c_name": "a\0b", "image": "python:pe_functions:plain"})
    create = "/docker?token=None&command=create"
    status, said = request(running_cluster.port, "POST", "/v1/streams", asked_for)
    assert (status, said) == (409, rb"'a\x00b' is no name of a stream or an image: it has a NUL")
    status, said = request(running_cluster.worker_port, "POST", create, asked_for)
    assert (status, b"it has a NUL" in said) == (400, True)
    assert (running_cluster.operator.status()["streams"], "Traceback" in running_cluster.log()) == ([], False)
