"""A TCP socket as a source."""
