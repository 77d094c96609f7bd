"""Measurements of our own load generator: its maximum rate and how accurately it keeps a rate."""
