"""Keys: each in its share, dealt out ahead, and the order of each looked at."""

import numpy as np
import pytest

from bench.model.message_codec import MessageWriter
from bench.model.message_keys import ENTRIES, Keys, KeySequence, draw_key_table, encode_keys
from bench.workload.processing import MessageProcessor


def written(count=100):
    return MessageWriter(run=1, producer=0, size=100, cost=0.0, entropy=0.5).write(0, np.zeros(count), 0.0)


def test_uniform_keys_come_equally_often():
    """To one entry of the table."""
    counts = np.bincount(draw_key_table(Keys(7), 1))
    assert len(counts) == 7
    assert counts.max() - counts.min() <= 1


def test_zipf_keys_come_in_proportion_to_their_rank():
    """The first twice as often as the second, ten times as often as the tenth; every key comes."""
    counts = np.bincount(draw_key_table(Keys(1000, "zipf"), 1))
    assert counts[0] == pytest.approx(2 * counts[1], rel=0.01)
    assert counts[0] == pytest.approx(10 * counts[9], rel=0.01)
    assert counts.min() >= 1
    assert len(set(encode_keys(Keys(1000)))) == 1000


def test_a_message_has_its_key_wherever_it_is_asked_for():
    """In any order, in any batch; the seed decides."""
    drawing, numbers = KeySequence(Keys(50), 4), np.arange(2 * ENTRIES, dtype=np.uint64)
    whole = drawing.lookup(np.zeros(len(numbers), dtype=np.int64), numbers)
    assert (drawing.lookup(np.zeros(10, dtype=np.int64), numbers[777:787]) == whole[777:787]).all()
    assert (KeySequence(Keys(50), 5).lookup(np.zeros(len(numbers), dtype=np.int64), numbers) != whole).any()


def test_order_is_looked_at_key_by_key():
    """Messages of two keys may pass each other, those of one may not."""
    drawing = KeySequence(Keys(2), 1)
    keys = drawing.lookup(np.zeros(100, dtype=np.int64), np.arange(100, dtype=np.uint64)).tolist()
    messages, work = written(), MessageProcessor(100, 0.5, keys=drawing)
    one = [message for message, key in zip(messages, keys, strict=True) if key == 0]
    other = [message for message, key in zip(messages, keys, strict=True) if key == 1]
    assert work.process([*other, *one])[0].out_of_order == 0
    assert work.process([*one[1:], one[0], *other])[0].out_of_order == 1
    assert MessageProcessor(100, 0.5).process([*other, *one])[0].out_of_order == 1
