"""HarmonicIO: smart peer-to-peer streaming of messages from connectors to processing engines; usable without the harness."""
