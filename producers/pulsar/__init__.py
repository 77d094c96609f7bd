"""Pulsar as a source: topic, sender, baseline producers, embedded standalone server."""
