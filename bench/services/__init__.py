"""Servers that the harness stands up by itself, from their published Maven artifacts."""
