"""A trace is read back as it was written; a file that is no trace, or was changed, is refused with its name."""

import hashlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sample_runs import QUICK, make_measurement, open_run_folder

from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.trace import ACTIVITIES, MESSAGE_KINDS, Span, TraceEvents, TraceMessage, TraceSample
from bench.storage import traces
from bench.storage.journal import read_journal

CELL = Cell("python", "kafka", 100, 0.01)
TRACE = TraceEvents(
    [Span("w1", "processing", 0, 50, "map", 3), Span("w2", "gc", 5, 9), Span("w1", "waiting", 50, 60, "map")],
    [TraceMessage("control", "w2", "driver", 9, 12, 1, 2)],
    [TraceSample(7, "load generator", "late_s", 0.25)],
)


@pytest.fixture
def entry(tmp_path):
    """Return the folder of a run with one traced trial, and the trial's line of the journal."""
    folder = tmp_path / "run"
    with open_run_folder(folder, QUICK) as store:
        store.add(CELL, make_measurement(0, 100.0, 200.0, trace=TRACE))
    return folder, read_journal(folder)[0].entry


def read(folder, entry, **changed):
    files = entry.files | changed
    return traces.read_events(folder, entry.cell, entry.measurement, files)


def rewrite(folder, entry, table, **columns):
    """Replace columns of a table of the trace, and return the checksums that the journal would have."""
    (name,) = (name for name in entry.files if name.endswith(f"-{table}.parquet"))
    content = pq.read_table(folder / name)
    for column, values in columns.items():
        content = content.set_column(content.schema.get_field_index(column), column, values)
    pq.write_table(content, folder / name)
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest()}


def test_a_trace_is_read_back_in_columns(entry):
    """Every worker, activity, operator and time."""
    events = read(*entry)
    spans, messages = events.spans, events.messages
    rows = zip(spans.worker, spans.activity, spans.operator, spans.begin, spans.end, strict=True)
    assert [
        Span(events.workers[w], ACTIVITIES[a], int(begin), int(end), events.operators[o])
        for w, a, o, begin, end in rows
    ] == [Span(one.worker, one.activity, one.begin, one.end, one.operator) for one in TRACE.spans]
    assert (events.workers[messages.sender[0]], events.workers[messages.receiver[0]]) == ("w2", "driver")
    assert (MESSAGE_KINDS[messages.kind[0]], messages.sent[0], messages.received[0]) == ("control", 9, 12)


def test_samples_are_read_back(entry):
    """As they were."""
    folder, line = entry
    assert traces.read_samples(folder, line.cell, line.measurement, line.files) == TRACE.samples


def test_the_journal_has_checksums_of_the_tables_and_not_the_trace(entry):
    """Three files beside those of every trial."""
    folder, line = entry
    assert traces.has_trace(line.cell, line.measurement, line.files)
    assert len([name for name in line.files if name.startswith("traces/")]) == 3
    assert line.measurement.trace == TraceEvents()
    assert b"w1" not in (folder / "trials.jsonl").read_bytes()


def test_a_trial_that_is_not_traced_has_no_files(tmp_path):
    """Nor has its run the folder."""
    with open_run_folder(tmp_path / "run", QUICK) as store:
        store.add(CELL, make_measurement(0, 100.0, 200.0))
    (line,) = read_journal(tmp_path / "run")
    assert not traces.has_trace(line.entry.cell, line.entry.measurement, line.entry.files)
    assert not (tmp_path / "run" / "traces").exists()


def test_a_trace_without_messages_is_read(tmp_path):
    """Its workers do not talk to each other."""
    with open_run_folder(tmp_path / "run", QUICK) as store:
        store.add(CELL, make_measurement(0, 100.0, 200.0, trace=TraceEvents(TRACE.spans)))
    events = read(tmp_path / "run", read_journal(tmp_path / "run")[0].entry)
    assert (len(events.spans), len(events.messages)) == (3, 0)


def test_a_changed_file_is_refused(entry):
    """The message says what to do."""
    folder, line = entry
    rewrite(folder, line, "spans", begin=pa.array([1, 5, 50]))
    with pytest.raises(UsageError, match="not as it was measured"):
        read(folder, line)


@pytest.mark.parametrize(
    ("table", "columns", "why"),
    [
        ("spans", {"activity": pa.array(["processing", "sleep", "gc"])}, "found 'sleep'"),
        ("spans", {"begin": pa.array([0, 5, 70])}, "ends before it begins"),
        ("spans", {"begin": pa.array([0.0, 5.0, 50.0])}, "columns are not those"),
        ("spans", {"end": pa.array([50, 9, 10**16])}, "beyond"),
        ("spans", {"worker": pa.array(["a", None, "b"])}, "is missing"),
        ("spans", {"worker": pa.array(["a", "\x1b[2J", "b"])}, "is no name"),
        ("spans", {"worker": pa.array(["a", "x" * 500, "b"])}, "is no name"),
        ("messages", {"kind": pa.array(["pigeon"])}, "found 'pigeon'"),
        ("messages", {"received": pa.array([-(10**16)])}, "beyond"),
    ],
    ids=["activity", "order", "type", "time", "null", "control character", "long name", "kind", "time of a message"],
)
def test_a_file_that_is_no_trace_is_refused(entry, table, columns, why):
    """Even if its checksum is right; the message names the file."""
    folder, line = entry
    with pytest.raises(UsageError, match=why) as refused:
        read(folder, line, **rewrite(folder, line, table, **columns))
    assert f"-{table}.parquet" in str(refused.value)


def test_a_table_without_one_of_its_columns_is_refused(entry):
    """As one with others."""
    folder, line = entry
    name = next(name for name in line.files if name.endswith("-spans.parquet"))
    table = pq.read_table(folder / name)
    pq.write_table(
        table.rename_columns(["task" if one == "worker" else one for one in table.column_names]), folder / name
    )
    with pytest.raises(UsageError, match="columns are not those of a trace"):
        read(folder, line, **{name: hashlib.sha256((folder / name).read_bytes()).hexdigest()})


def test_a_file_of_anything_else_is_refused(entry):
    """It is no Parquet."""
    folder, line = entry
    (name,) = (name for name in line.files if name.endswith("-spans.parquet"))
    (folder / name).write_bytes(b"PAR1 or not")
    with pytest.raises(UsageError, match="no table of a trace"):
        read(folder, line, **{name: hashlib.sha256(b"PAR1 or not").hexdigest()})


def test_a_value_that_is_not_finite_is_refused(entry):
    """Of a sample."""
    folder, line = entry
    files = line.files | rewrite(folder, line, "samples", value=pa.array([float("nan")]))
    with pytest.raises(UsageError, match="not finite"):
        traces.read_samples(folder, line.cell, line.measurement, files)
