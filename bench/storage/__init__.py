"""The run folder: the journal, the results, and what else outlives a run."""
