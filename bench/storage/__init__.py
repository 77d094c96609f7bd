"""The run folder: the journal of measurements, the results, and the files of counters and latencies."""
