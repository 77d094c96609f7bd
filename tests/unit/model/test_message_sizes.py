"""Sizes that differ within a cell: the table has the distribution, and every message is verified at its own size."""

import numpy as np
import pytest
from scenario_files import read_scenario

from bench.model.message_codec import MessageWriter, read_mixed
from bench.model.message_filler import make_filler
from bench.model.message_sizes import BLOCK, ENTRIES, MessageSize, Sizes, SizeSequence, draw_size_table
from bench.workload.processing import MessageProcessor

LOGNORMAL = Sizes(10_000, 1_000_000)
CHOICE = Sizes(choice=((100, 0.9), (1_000_000, 0.1)))
SMALL = Sizes(choice=((64, 0.25), (100, 0.5), (5000, 0.25)))


def mixed(sizes=SMALL, count=600, producer=0, seed=3, entropy=0.5):
    """Return messages of one producer, with the sizes of the sequence, as a batch writer writes them."""
    drawing, filler = SizeSequence(sizes, seed), make_filler(sizes.largest, entropy)
    heads = MessageWriter(run=1, producer=producer, size=sizes.largest, cost=0.0, entropy=entropy).write_headers(
        0, np.zeros(count), 0.0
    )
    producers, numbers = np.full(count, producer), np.arange(count, dtype=np.uint64)
    rests = filler.slices(producers, numbers, drawing.lookup(producers, numbers).tolist())
    return [head + rest for head, rest in zip(heads, rests, strict=True)]


def test_a_lognormal_table_has_its_quantiles():
    """Median and p99 are the specified ones, and no size is below the header's."""
    table = draw_size_table(LOGNORMAL, 1)
    assert np.median(table) == pytest.approx(10_000, rel=0.01)
    assert np.quantile(table, 0.99) == pytest.approx(1_000_000, rel=0.03)
    assert table.min() >= 64


def test_a_choice_has_its_shares():
    """The shares are exact to one entry of the table."""
    table = draw_size_table(CHOICE, 1)
    assert np.count_nonzero(table == 1_000_000) == pytest.approx(0.1 * ENTRIES, abs=1)
    assert set(table.tolist()) == {100, 1_000_000}


@pytest.mark.parametrize("sizes", [LOGNORMAL, CHOICE], ids=["lognormal", "choice"])
def test_every_block_holds_the_whole_distribution(sizes):
    """A short trial has nearly the cell's mean, whatever the seed; the largest size is in the table."""
    table = draw_size_table(sizes, 9)
    means = table.reshape(-1, BLOCK).mean(axis=1)
    assert np.median(means) == pytest.approx(sizes.mean, rel=0.15)
    assert round(draw_size_table(sizes, 10).mean()) == sizes.mean
    assert table.max() == sizes.largest


def test_seeds_order_the_table_differently():
    """The sizes are the same in another order."""
    one, other = draw_size_table(LOGNORMAL, 1), draw_size_table(LOGNORMAL, 2)
    assert (one != other).any()
    assert sorted(one.tolist()) == sorted(other.tolist())


def test_mixed_messages_are_read_back():
    """Sequence numbers come back, and all messages are intact."""
    headers = read_mixed(mixed(), make_filler(5000, 0.5), SizeSequence(SMALL, 3).lookup)
    assert (headers.corrupted, headers.seq.tolist()) == (0, list(range(600)))


@pytest.mark.parametrize("offset", [0, 63, 64, 90, -1], ids=lambda offset: f"byte {offset}")
def test_a_changed_byte_of_a_mixed_message_is_detected(offset):
    """This holds in header and filler."""
    sizes = Sizes(choice=((100, 0.5), (200, 0.5)))
    messages = mixed(sizes)
    wrong = bytearray(messages[7])
    wrong[offset] ^= 1
    headers = read_mixed([*messages[:7], bytes(wrong)], make_filler(200, 0.5), SizeSequence(sizes, 3).lookup)
    assert headers.corrupted == 1


def test_a_mixed_message_of_another_messages_size_is_corrupted():
    """It is truncated or extended to a size of the distribution; the sequence number determines the right size."""
    messages, filler = mixed(), make_filler(5000, 0.5)
    long = next(one for one in messages if len(one) == 5000)
    short = next(one for one in messages if len(one) == 100)
    number = messages.index(short)
    (rest,) = filler.slices(np.array([0]), np.array([number], dtype=np.uint64), [5000])
    wrong = [long[:100], short[:64] + rest, b"", b"x" * 64]
    headers = read_mixed(wrong, filler, SizeSequence(SMALL, 3).lookup)
    assert (len(headers), headers.corrupted) == (0, 4)


def test_mixed_messages_of_several_producers_are_counted():
    """Each is verified by the sizes of its own producer."""
    processor = MessageProcessor(SMALL.mean, 0.5, sizes=SizeSequence(SMALL, 3))
    reports = processor.process([*mixed(producer=0), *mixed(producer=1)])
    assert [(part.producer, part.count) for part in reports[0].sums] == [(0, 600), (1, 600)]
    assert sum(report.corrupted for report in reports) == 0


def test_a_matrix_of_mixed_messages_is_verified_by_their_sizes():
    """Messages in one matrix have the same size by chance, and each of them must have that size."""
    same = [message for message in mixed() if len(message) == 100]
    matrix = np.frombuffer(b"".join(same), dtype=np.uint8).reshape(len(same), 100)
    reports = MessageProcessor(SMALL.mean, 0.5, sizes=SizeSequence(SMALL, 3)).process_matrix(matrix)
    assert (reports[0].count, reports[0].corrupted) == (len(same), 0)


def test_a_cell_of_mixed_sizes_is_named_for_their_mean(tmp_path):
    """The cell also has the distribution and its largest size."""
    path = tmp_path / "mixed.yaml"
    path.write_text("name: x\nsystems: [python/kafka]\ngrid: {message_size: {choice: {100 B: 90 %, 1 MB: 10 %}}}\n")
    (cell,) = read_scenario(path).cells()
    assert cell.message_bytes == CHOICE.mean
    assert cell.sizes == CHOICE
    assert cell.largest_bytes == 1_000_000
    assert "mix" in cell.name
    assert cell.size_text.startswith("mean ")


def test_a_distribution_is_written_as_it_is_read():
    """A distribution that is written and read again gives the same cell."""
    for sizes in (LOGNORMAL, CHOICE):
        size = MessageSize.read(sizes.written)
        assert MessageSize.read(size.written) == size
        assert size.sizes == sizes
    assert MessageSize.read("1 kB") != MessageSize.read({"choice": {"1 kB": 1}})
