"""Consumers: readers of the sources in our own code, one module a source."""
