"""What people are shown: tables, maps and timelines, made from a run folder alone."""
