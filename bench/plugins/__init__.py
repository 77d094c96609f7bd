"""Plugins: their protocols, their registry, and the environment that they run in."""
