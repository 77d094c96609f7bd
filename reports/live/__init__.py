"""The live page of a run."""
