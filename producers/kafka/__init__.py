"""Kafka as a source: topic, sender, baseline producers, embedded broker."""
