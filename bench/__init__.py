"""The harness: it knows the faces of its rooms, never a room."""
