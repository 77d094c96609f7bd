"""Records of a program under test, grouped by their size."""

from frameworks.command.report_reader import group_records


def test_messages_of_a_topic_are_records_of_one_size() -> None:
    """One of neither size is a record that cannot be read, and so not passed over."""
    batches = list(group_records([b"a" * 64, b"b" * 80, b"a" * 64, b"", b"c" * 100]))
    assert [batch.shape for batch in batches] == [(2, 64), (1, 80), (2, 64)]
    assert batches[2].sum() == 0
    assert list(group_records([])) == []
