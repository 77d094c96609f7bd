"""Keys: each in its share, dealt out ahead, and the order of each looked at."""

import numpy as np
import pytest

from bench.model.message_codec import Writer
from bench.model.message_keys import ENTRIES, KeyDrawing, Keys, names_of, table_of
from bench.workload.processing import Work


def written(count=100):
    return Writer(run=1, producer=0, size=100, cost=0.0, entropy=0.5).write(0, np.zeros(count), 0.0)


def test_uniform_keys_come_equally_often():
    """To one entry of the table."""
    counts = np.bincount(table_of(Keys(7), 1))
    assert len(counts) == 7
    assert counts.max() - counts.min() <= 1


def test_zipf_keys_come_in_proportion_to_their_rank():
    """The first twice as often as the second, ten times as often as the tenth; every key comes."""
    counts = np.bincount(table_of(Keys(1000, "zipf"), 1))
    assert counts[0] == pytest.approx(2 * counts[1], rel=0.01)
    assert counts[0] == pytest.approx(10 * counts[9], rel=0.01)
    assert counts.min() >= 1
    assert len(set(names_of(Keys(1000)))) == 1000


def test_a_message_has_its_key_wherever_it_is_asked_for():
    """In any order, in any batch; the seed decides."""
    drawing, numbers = KeyDrawing(Keys(50), 4), np.arange(2 * ENTRIES, dtype=np.uint64)
    whole = drawing.of(np.zeros(len(numbers), dtype=np.int64), numbers)
    assert (drawing.of(np.zeros(10, dtype=np.int64), numbers[777:787]) == whole[777:787]).all()
    assert (KeyDrawing(Keys(50), 5).of(np.zeros(len(numbers), dtype=np.int64), numbers) != whole).any()


def test_order_is_looked_at_key_by_key():
    """Messages of two keys may pass each other, those of one may not."""
    drawing = KeyDrawing(Keys(2), 1)
    keys = drawing.of(np.zeros(100, dtype=np.int64), np.arange(100, dtype=np.uint64)).tolist()
    messages, work = written(), Work(100, 0.5, keys=drawing)
    one = [message for message, key in zip(messages, keys, strict=True) if key == 0]
    other = [message for message, key in zip(messages, keys, strict=True) if key == 1]
    assert work.done([*other, *one])[0].out_of_order == 0
    assert work.done([*one[1:], one[0], *other])[0].out_of_order == 1
    assert Work(100, 0.5).done([*other, *one])[0].out_of_order == 1
