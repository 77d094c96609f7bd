"""HarmonicIO's stream connector as a source."""
