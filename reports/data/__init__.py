"""What a report shows, as plain data, computed from a run folder."""
