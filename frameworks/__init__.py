"""Frameworks under test: one package a framework."""
