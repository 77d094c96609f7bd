"""A worker: starts and stops PEs on its host, and tells the master how they do."""
