"""Kafka's own kafka-producer-perf-test as a baseline producer.

The real tool from its published jar, with the same settings.
"""

import re
from pathlib import Path

from bench.errors import ServiceError
from bench.plugins.protocols import Endpoint
from bench.services.java import java
from bench.services.maven_jars import download_jars
from bench.system.supervisor import run_tool
from bench.workload.rate_meter import WARM_UP_S, RateMeter

TOOL = "org.apache.kafka.tools.ProducerPerformance"
_LINE = re.compile(r"^(\d+) records sent, ([\d.]+) records/sec", re.MULTILINE)
_SECONDS = 8.0
"""For which it should run: it says how far it is every five, and in the first of them its Java is not warm yet."""
_USUAL_RATE, _USUAL_BYTES = 0.9e6, 0.5e9
"""Messages and bytes a second of one core; a machine that is twice as fast is measured for half as long."""


def perf_test(endpoint: Endpoint, message: bytes, meter: RateMeter, cache: Path) -> None:
    """Run the tool at full speed.

    The meter gets the time after its first line, or the whole time where it prints only one.
    """
    records = max(16, round(_SECONDS * min(_USUAL_RATE, _USUAL_BYTES / len(message))))
    output = run_tool(_command(endpoint, len(message), records, cache), timeout_s=120)
    spans = [(int(count), int(count) / float(rate)) for count, rate in _LINE.findall(output)]
    if not spans:
        raise ServiceError(f"kafka-producer-perf-test said nothing of its rate: {output[-200:]!r}")
    (total, seconds), cold = spans[-1], spans[0] if len(spans) > 1 else (0, 0.0)
    meter.record(0.0, 0)
    meter.record(WARM_UP_S + cold[1], cold[0])
    meter.record(WARM_UP_S + seconds, total)


def _command(endpoint: Endpoint, size: int, records: int, cache: Path) -> list[str]:
    class_path = ":".join(f"{download_jars(name, cache, lambda _: None)}/*" for name in ("kafka", "kafka-tools"))
    client = endpoint.client
    properties = {
        "bootstrap.servers": endpoint.address,
        "acks": client["acks"],
        "linger.ms": round(float(client["linger"]) * 1000),
        "batch.size": client["batch"],
        "compression.type": client["compression"],
        "max.request.size": client["largest"],
        "buffer.memory": max(64 * 10**6, 4 * size),
    }
    return [
        java(), "-Xmx512m", "-cp", class_path, TOOL, "--topic", endpoint.name, "--record-size", str(size),
        "--num-records", str(records), "--throughput", "-1",
        "--producer-props", *(f"{name}={value}" for name, value in properties.items()),
    ]  # fmt: skip
