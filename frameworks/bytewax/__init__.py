"""Bytewax as a framework under test."""
