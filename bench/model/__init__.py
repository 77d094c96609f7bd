"""Records and message formats that every layer shares; pure."""
