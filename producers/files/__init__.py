"""A folder of files as a source."""
