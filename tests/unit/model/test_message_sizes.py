"""Sizes that differ within a cell: the table is honest, and every message is verified at its own size."""

import numpy as np
import pytest

from bench.config.validation import read_scenario
from bench.model.message_codec import MessageWriter, make_filler, read_mixed
from bench.model.message_sizes import BLOCK, ENTRIES, MessageSize, Sizes, SizeSequence, draw_size_table
from bench.workload.processing import MessageProcessor

LOGNORMAL = Sizes(10_000, 1_000_000)
CHOICE = Sizes(choice=((100, 0.9), (1_000_000, 0.1)))
SMALL = Sizes(choice=((64, 0.25), (100, 0.5), (5000, 0.25)))


def mixed(sizes=SMALL, count=600, producer=0, seed=3, entropy=0.5):
    """Messages of one producer with sizes as drawn, as an outlet writes them."""
    drawing, longest = SizeSequence(sizes, seed), make_filler(sizes.largest, entropy)
    heads = MessageWriter(run=1, producer=producer, size=sizes.largest, cost=0.0, entropy=entropy).write_headers(
        0, np.zeros(count), 0.0
    )
    drawn = drawing.lookup(np.full(count, producer), np.arange(count, dtype=np.uint64)).tolist()
    return [head + longest[: size - 64] for head, size in zip(heads, drawn, strict=True)]


def test_a_lognormal_table_has_its_quantiles():
    """Median and p99 are those that were asked for, and nothing is below the header's size."""
    table = draw_size_table(LOGNORMAL, 1)
    assert np.median(table) == pytest.approx(10_000, rel=0.01)
    assert np.quantile(table, 0.99) == pytest.approx(1_000_000, rel=0.03)
    assert table.min() >= 64


def test_a_choice_has_its_shares():
    """To one entry of the table."""
    table = draw_size_table(CHOICE, 1)
    assert np.count_nonzero(table == 1_000_000) == pytest.approx(0.1 * ENTRIES, abs=1)
    assert set(table.tolist()) == {100, 1_000_000}


@pytest.mark.parametrize("sizes", [LOGNORMAL, CHOICE], ids=["lognormal", "choice"])
def test_every_block_holds_the_whole_distribution(sizes):
    """A short trial sees nearly the mean that the cell is named for, whatever the seed; the largest comes once."""
    table = draw_size_table(sizes, 9)
    means = table.reshape(-1, BLOCK).mean(axis=1)
    assert np.median(means) == pytest.approx(sizes.mean, rel=0.15)
    assert round(draw_size_table(sizes, 10).mean()) == sizes.mean
    assert table.max() == sizes.largest


def test_seeds_order_the_table_differently():
    """The same sizes in another order."""
    one, other = draw_size_table(LOGNORMAL, 1), draw_size_table(LOGNORMAL, 2)
    assert (one != other).any()
    assert sorted(one.tolist()) == sorted(other.tolist())


def test_mixed_messages_are_read_back():
    """Numbers come back, and all of them are intact."""
    found = read_mixed(mixed(), make_filler(5000, 0.5), SizeSequence(SMALL, 3).lookup)
    assert (found.corrupted, found.seq.tolist()) == (0, list(range(600)))


@pytest.mark.parametrize("place", [0, 63, 64, 90, -1], ids=lambda place: f"byte {place}")
def test_a_changed_byte_of_a_mixed_message_is_found(place):
    """Wherever it stands."""
    sizes = Sizes(choice=((100, 0.5), (200, 0.5)))
    messages = mixed(sizes)
    wrong = bytearray(messages[7])
    wrong[place] ^= 1
    assert read_mixed([*messages[:7], bytes(wrong)], make_filler(200, 0.5), SizeSequence(sizes, 3).lookup).corrupted == 1


def test_a_mixed_message_of_another_messages_size_is_corrupted():
    """Cut to a size that the distribution has, or grown to it: the number says which size it must have."""
    messages, longest = mixed(), make_filler(5000, 0.5)
    long = next(one for one in messages if len(one) == 5000)
    short = next(one for one in messages if len(one) == 100)
    found = read_mixed([long[:100], short + longest[36:4936], b"", b"x" * 64], longest, SizeSequence(SMALL, 3).lookup)
    assert (len(found), found.corrupted) == (0, 4)


def test_the_work_tallies_mixed_messages_of_several_producers():
    """Each by the sizes of its own producer."""
    work = MessageProcessor(SMALL.mean, 0.5, sizes=SizeSequence(SMALL, 3))
    reports = work.process([*mixed(producer=0), *mixed(producer=1)])
    assert [(part.producer, part.count) for part in reports[0].sums] == [(0, 600), (1, 600)]
    assert sum(report.corrupted for report in reports) == 0


def test_messages_alike_by_chance_are_verified_as_mixed():
    """A batch that lies in one piece has one size, which each message of it must have."""
    same = [message for message in mixed() if len(message) == 100]
    matrix = np.frombuffer(b"".join(same), dtype=np.uint8).reshape(len(same), 100)
    reports = MessageProcessor(SMALL.mean, 0.5, sizes=SizeSequence(SMALL, 3)).process_matrix(matrix)
    assert (reports[0].count, reports[0].corrupted) == (len(same), 0)


def test_a_cell_of_mixed_sizes_is_named_for_their_mean(tmp_path):
    """And carries the distribution and its largest size."""
    path = tmp_path / "mixed.yaml"
    path.write_text("name: x\nsystems: [plain/kafka]\ngrid: {message_size: {choice: {100 B: 90 %, 1 MB: 10 %}}}\n")
    (cell,) = read_scenario(path).cells()
    assert cell.message_bytes == CHOICE.mean
    assert cell.sizes == CHOICE
    assert cell.largest_bytes == 1_000_000
    assert "mix" in cell.name
    assert cell.size_text.startswith("mean ")


def test_a_distribution_is_written_as_it_is_read():
    """What a run's folder keeps gives the same cell again."""
    for sizes in (LOGNORMAL, CHOICE):
        size = MessageSize.read(sizes.written)
        assert MessageSize.read(size.written) == size
        assert size.sizes == sizes
    assert MessageSize.read("1 kB") != MessageSize.read({"choice": {"1 kB": 1}})
