"""A framework of known capacity, with which the harness measures itself."""
