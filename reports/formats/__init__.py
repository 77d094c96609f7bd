"""Report formats: one module a file type."""
