"""Records and the message format that all layers share. Pure: no clock, file, socket or thread."""
