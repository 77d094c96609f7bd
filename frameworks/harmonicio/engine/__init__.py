"""HarmonicIO itself: master, workers, processing engines and connectors. Imports nothing of the harness."""
