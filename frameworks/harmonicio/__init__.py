"""HarmonicIO: its adapter to the harness; `engine` is the system itself, usable without the harness."""
