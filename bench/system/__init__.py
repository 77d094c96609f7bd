"""Processes, channels, clocks: the operating system as the harness uses it."""
