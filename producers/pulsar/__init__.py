"""Pulsar as a source: topic, sender, embedded server."""
