"""Targets in this process: frames, text of the legacy protocol, YAML files, run folders, results of other tools."""

import itertools
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar

import msgspec
import yaml
from crc32c import crc32c

from bench.config.validation import parse_scenario
from bench.config.yaml_document import read_document
from bench.errors import HarnessError
from bench.plugins.scenario_check import check_scenario
from bench.plugins.site_file import read_site_file
from bench.storage.checksums import seal
from bench.storage.journal import read_journal
from bench.storage.run_folder import read_results_record, read_run, read_visits
from bench.storage.series_files import read_series
from frameworks.harmonicio.engine.config import MasterConfig, WorkerConfig, read_config
from frameworks.harmonicio.engine.errors import HarmonicError
from frameworks.harmonicio.engine.master.fleet import read_stream_spec
from frameworks.harmonicio.engine.master.journal import Journal
from frameworks.harmonicio.engine.master.queue import MessageQueue, QueueLimits
from frameworks.harmonicio.engine.master.queue_intake import QueueIntake
from frameworks.harmonicio.engine.master.worker_report import read_report
from frameworks.harmonicio.engine.wire import frame as frames
from frameworks.harmonicio.engine.wire.control_messages import Bye, Hello, Leases, NodeAddress, Welcome
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool, FrameReader
from frameworks.harmonicio.engine.wire.literal import read_literal, write_literal
from frameworks.harmonicio.engine.wire.shared_memory import SharedMemoryHandle
from reports.formats import openmessaging
from tests.sample_runs import QUICK, make_run

ROOT = Path(__file__).parents[2]
_COMMENT = re.compile(rb"^\s*#.*\n|\s+#.*", re.MULTILINE)
_SUM_BYTES = 4
_BODIES = {
    frames.FrameKind.HELLO: Hello,
    frames.FrameKind.WELCOME: Welcome,
    frames.FrameKind.LEASES: Leases,
    frames.FrameKind.BYE: Bye,
}


def example_frames() -> list[bytes]:
    """Return valid frames of every kind, and some of them one behind the other."""
    hello = frames.encode_control(
        frames.FrameKind.HELLO, Hello("connector", "s", 7, "token", SharedMemoryHandle("boot", 1, 3, 4096))
    )
    data = [
        b"".join(map(bytes, frames.encode_frame(messages, 7, number, 0).buffers))
        for number, messages in enumerate([[b"x" * 100] * 3, [b"", b"ab", b"abc"], [b"y" * 2000]])
    ]
    control = [
        frames.encode_control(frames.FrameKind.WELCOME, Welcome("instance", 100, 10**6)),
        frames.encode_control(frames.FrameKind.LEASES, Leases(10.0, [NodeAddress("pe", "127.0.0.1", 9000)])),
        frames.encode_control(frames.FrameKind.BYE, Bye("draining")),
        frames.encode_control(frames.FrameKind.RENEW),
        frames.encode_ack(7, 0, 3, failed=0, credit=(10, 1000)),
    ]
    reference = frames.REFERENCE.pack(0, 16, 0)
    shared = frames.encode_header(
        frames.FrameKind.DATA, len(reference), crc32c(reference), flags=frames.SHARED | frames.EQUAL, count=2,
        ids=(7, 9, 0),
    ) + reference  # fmt: skip
    return [hello, *data, *control, shared, hello + data[0] + data[1] + control[3], hello + hello, hello + shared]


def with_right_checksums(data: bytes) -> bytes:
    """Return data in which each frame, as its own length says, has the checksums of its header and its body."""
    whole, at = bytearray(data), 0
    while at + frames.HEADER_BYTES <= len(whole) and whole[at : at + 4] == frames.MAGIC:
        size = int.from_bytes(whole[at + frames.HEADER.size - 4 : at + frames.HEADER.size], "little")
        begin = at + frames.HEADER_BYTES
        size = min(size, len(whole) - begin)
        whole[at + frames.HEADER.size - 4 : at + frames.HEADER.size] = size.to_bytes(4, "little")
        body = crc32c(bytes(whole[begin : begin + size]))
        whole[begin - 2 * _SUM_BYTES : begin - _SUM_BYTES] = body.to_bytes(_SUM_BYTES, "little")
        head = crc32c(bytes(whole[at : begin - _SUM_BYTES]))
        whole[begin - _SUM_BYTES : begin] = head.to_bytes(_SUM_BYTES, "little")
        at = begin + size
    return bytes(whole)


class FrameTarget:
    """The parser of frames, fed in two pieces, and what is made of each frame."""

    seeds, expected = example_frames(), (HarmonicError,)

    def __init__(self) -> None:
        self._buffers, self._memory = BufferPool(), memoryview(bytes(4096))

    def read(self, data: bytes) -> None:
        reader, cut = FrameReader(self._buffers, 2**16), len(data) // 3
        for frame in itertools.chain(reader.feed(data[:cut]), reader.feed(data[cut:])):
            if frame.header.kind is frames.FrameKind.DATA:
                if frame.header.flags & frames.SHARED:
                    frame.resolve_shared_body(self._memory)
                assert sum(map(len, frame.batch())) <= len(frame.body)
            elif frame.header.kind is frames.FrameKind.ACK:
                frames.decode_ack(frame)
            elif frame.header.kind in _BODIES:
                frame.decode_body(_BODIES[frame.header.kind])

    def repair(self, data: bytes) -> bytes:
        return with_right_checksums(data)


class LegacyTarget:
    """The messages of the legacy protocol on their way into the queue."""

    seeds, expected = [b"001smessage", b"006streamabc", b"003" + "日".encode() + b"x" * 50], (HarmonicError,)

    def read(self, data: bytes) -> None:
        queue = MessageQueue(QueueLimits(), None)
        name = QueueIntake(queue, max_message_bytes=1000, legacy_protocol=True).add_raw(data)
        taken = queue.take_message(name)
        assert taken is not None
        assert data.endswith(taken[1])

    def repair(self, data: bytes) -> bytes:
        return b"%03d" % min(len(data), 9) + data


class LiteralTarget:
    """Texts of the control plane: literals, reports of workers, requests for streams."""

    seeds: ClassVar = [
        b'{"node_name": "w", "node_addr": "127.0.0.1", "node_port": 81, "docker": [{"short_id": "a", "status": "x"}]}',
        b"{'c_name': 's', 'num': 2, 'image': 'python:m:f', 'settings': {'a': [1, 2.5, None, True]}}",
        b"[1, (2, 3), 'text', \"quoted\", -4, 1e3]",
        b'{"c_name": "s", "cpu_share": 0.5, "memory_bytes": 1000000, "volatile": true}',
    ]  # fmt: skip
    expected = (HarmonicError,)

    def read(self, data: bytes) -> None:
        value = read_literal(data)
        write_literal(value).encode()
        msgspec.json.encode(value)  # as the master saves it
        for reader in (partial(read_report, remote="127.0.0.1"), read_stream_spec):
            try:
                reader(data)
            except HarmonicError:
                continue

    def repair(self, data: bytes) -> bytes:
        return b'{"c_name": "s", "node_addr": "h", "x": ' + data + b"}"


class QueueJournalTarget:
    """The journal of HarmonicIO's master: whatever is on the disk, the master starts with what is whole."""

    expected = (HarmonicError,)

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "journal"
        journal = Journal(self._folder, sync=False)
        queue = MessageQueue(QueueLimits(), journal)
        for number in range(5):
            head, *body = frames.encode_frame([b"m" * 50] * 3, 7, 3 * number, 0).buffers
            queue.add("s", bytes(head), b"".join(map(bytes, body)))
        taken = queue.take_message("s")
        assert taken is not None
        queue.done("s", taken[0].key)
        journal.close()
        self._file = next(self._folder.glob("*.journal"))
        self.seeds = [self._file.read_bytes()]

    def read(self, data: bytes) -> None:
        for path in self._folder.glob("*.journal"):
            path.unlink()
        self._file.write_bytes(data)
        journal = Journal(self._folder, sync=False)
        try:
            MessageQueue(QueueLimits(), journal)
        finally:
            journal.close()

    def repair(self, data: bytes) -> bytes:
        return data


class FileTarget:
    """A reader of one file.

    Args:
        path: Of the file.
        read_file: Reads it.
        seeds: Valid contents.
    """

    expected = (HarnessError, HarmonicError)

    def __init__(self, path: Path, read_file: Callable[[Path], object], seeds: list[bytes]) -> None:
        self._path, self._read_file, self.seeds = path, read_file, seeds

    def read(self, data: bytes) -> None:
        self._path.write_bytes(data)
        self._read_file(self._path)

    def repair(self, data: bytes) -> bytes:
        return data


def _read_scenario(path: Path) -> None:
    document = read_document(path)
    check_scenario(document, parse_scenario(document))


def _read_engine_config(path: Path) -> None:
    read_config(MasterConfig, path, {}, {})
    read_config(WorkerConfig, path, {}, {})


def _import_result(path: Path) -> None:
    out = path.parent / "imported"
    try:
        openmessaging.read([path], out, "bench import")
    finally:
        shutil.rmtree(out, ignore_errors=True)


class RunFolderTarget:
    """The readers of a run folder: the first byte of an input chooses which file it becomes the content of."""

    expected = (HarnessError,)

    def __init__(self, folder: Path) -> None:
        self._run = make_run(folder / "run", QUICK, trials=2)
        line = read_journal(self._run)[0]
        series = next(name for name in line.entry.files if name.endswith(".parquet"))
        self._files: list[tuple[str, Callable[[], object]]] = [
            ("trials.jsonl", lambda: read_journal(self._run)),
            ("cells.json", lambda: read_results_record(self._run)),
            ("run.json", lambda: read_run(self._run)),
            ("visits.jsonl", lambda: read_visits(self._run)),
            (series, lambda: read_series(self._run, line.entry.cell, line.entry.measurement)),
        ]
        self._contents = [self._content(name) for name, _ in self._files]
        self.seeds = [bytes([place]) + content[:4000] for place, content in enumerate(self._contents)]

    def read(self, data: bytes) -> None:
        place = data[0] % len(self._files) if data else 0
        name, reader = self._files[place]
        path = self._run / name
        path.write_bytes(data[1:])
        try:
            reader()
        finally:
            path.write_bytes(self._contents[place])

    def repair(self, data: bytes) -> bytes:
        """Return the input with the checksum of its first line."""
        line, *rest = data[1:].split(b"\n")
        return data[:1] + b"\n".join([seal(line), *rest])

    def _content(self, name: str) -> bytes:
        path = self._run / name
        return path.read_bytes() if path.exists() else b""


@contextmanager
def _plain(make: Callable[[], object], _: Path) -> Iterator[object]:
    yield make()


@contextmanager
def _in_folder(make: Callable[[Path], object], folder: Path) -> Iterator[object]:
    yield make(folder)


@contextmanager
def _file(
    name: str, reader: Callable[[Path], object], seeds: Callable[[], list[bytes]], folder: Path
) -> Iterator[object]:
    yield FileTarget(folder / name, reader, seeds())


def _scenarios() -> list[bytes]:
    """Return the scenarios without their comments: the time of a YAML file is that of its characters."""
    files = sorted((ROOT / "scenarios").glob("*.yaml"))
    return [_COMMENT.sub(b"", path.read_bytes()) for path in files] + [b"name: x  # a comment\n"]


def _sites() -> list[bytes]:
    sections = {
        "name": "lab", "shared_machine": True, "cores": 8, "bandwidth": "10 Gbit/s", "kafka": {"bootstrap": "h:9092"},
        "spark": {"master": "spark://h:7077", "cores": 4}, "harmonicio": {"master": "h:8080", "data": "h:8090"},
    }  # fmt: skip
    return [yaml.safe_dump(sections).encode(), b"shared_machine: true\n", b"hosts: [{name: a, address: 10.0.0.1}]\n"]


def _engine_configs() -> list[bytes]:
    return [
        b"tokens: {operator: o, worker: w, pe: p, connector: c}\nport: 8080\nqueue_messages: 1000\n",
        b"host: 127.0.0.1\nallow: ['python:*']\ndata_ports: [9000, 9100]\n",
    ]


def _foreign_results() -> list[bytes]:
    latency = b'"aggregatedEndToEndLatency50pct": 2.0, "aggregatedEndToEndLatency99pct": 9.5'
    return [
        b'{"workload": "w", "driver": "K", "messageSize": 9, "publishRate": [5], "consumeRate": [1], ' + latency + b"}",
        b'{"workload": "w", "driver": "p/u l?", "messageSize": 100, "publishRate": [5, 1e3], "consumeRate": [1, 1e3]}',
    ]


TARGETS: dict[str, Callable[[Path], AbstractContextManager[object]]] = {
    "frames": partial(_plain, FrameTarget),
    "legacy": partial(_plain, LegacyTarget),
    "literal": partial(_plain, LiteralTarget),
    "queue-journal": partial(_in_folder, QueueJournalTarget),
    "engine-config": partial(_file, "config.yaml", _read_engine_config, _engine_configs),
    "scenario": partial(_file, "scenario.yaml", _read_scenario, _scenarios),
    "site": partial(_file, "site.yaml", read_site_file, _sites),
    "import": partial(_file, "result.json", _import_result, _foreign_results),
    "run-folder": partial(_in_folder, RunFolderTarget),
}
