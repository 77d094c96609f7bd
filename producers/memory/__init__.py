"""A pipe within the harness's process as a source."""
