"""How messages are taken off a source by code of our own."""
