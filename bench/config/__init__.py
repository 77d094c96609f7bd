"""Scenario and site files: types, strict validation, JSON Schemas."""
