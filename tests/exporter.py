"""A node exporter for tests: it serves the figures of a host whose clock may be off."""

import time
from http.server import BaseHTTPRequestHandler

SERVED = """\
# HELP node_time_seconds System time in seconds since epoch (1970).
# TYPE node_time_seconds gauge
node_time_seconds {time!r}
node_cpu_seconds_total{{cpu="0",mode="idle"}} 4.5e+06
node_cpu_seconds_total{{cpu="1",mode="idle"}} 4.5e+06
node_cpu_seconds_total{{cpu="0",mode="steal"}} {stolen!r}
node_cpu_seconds_total{{cpu="1",mode="steal"}} 1.5
node_memory_MemAvailable_bytes 8e+09
stream_bench_service{{name="kafka",version="4.1.1"}} 1
stream_bench_service{{name="spark-worker",version="4.2.0"}} 0
stream_bench_files{{name="kafka"}} 1024
stream_bench_clock_followed 1
this line is not one of them
"""


class Exporter(BaseHTTPRequestHandler):
    """Serves figures as a node exporter does."""

    ahead = 0.0
    """seconds by which its clock is ahead of ours"""
    stolen = 0.0
    """seconds of its first core that its hypervisor took"""

    def do_GET(self) -> None:
        body = SERVED.format(time=time.time() + type(self).ahead, stolen=type(self).stolen).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:  # type: ignore[override]  # nobody reads it
        """Log nothing."""
