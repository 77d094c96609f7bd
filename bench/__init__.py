"""The harness: it knows the protocols of its plugins, never a plugin."""
