"""Redis streams as a source of stream-bench, and a framework of one thread: plugins outside the repository."""
