"""The table of Flink's benchmark: rates, as shares of the plain loop's, beside the shares that were seen."""

from frameworks.flink.benchmark import LOOP, LoopRate, table


def test_the_table_has_ratios_and_says_which_are_reached() -> None:
    """A tenth below a share that was seen is still reached; the median of the turns counts."""
    found = [
        LoopRate("flink table", 100, [390.0, 1.0, 400.0], exact=True),
        LoopRate("flink datastream", 100, [80.0], exact=True),
        LoopRate(LOOP, 100, [1000.0], exact=True),
    ]
    udf, datastream, loop = table(found).splitlines()
    assert udf.endswith("390 messages/s  0.390 of the loop  (seen 0.43: reached)  exact")
    assert "0.080 of the loop  (seen 0.09: BELOW)" in datastream
    assert "1.000 of the loop" in loop
    assert "seen" not in loop


def test_a_reading_that_was_not_exact_is_marked() -> None:
    """It is one of a size of which no share was seen."""
    found = [LoopRate("flink table", 5000, [10.0], exact=False), LoopRate(LOOP, 5000, [100.0], exact=True)]
    assert table(found).splitlines()[0].endswith("NOT EXACT")
    assert "seen" not in table(found)
