"""Data of a report, computed from a run folder: plain data, without figures or files."""
