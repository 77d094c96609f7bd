"""Simulated systems of known capacity, and the acceptance criteria that a search strategy must meet on them; pure."""
