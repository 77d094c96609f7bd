"""A worker: starts and stops PEs on its host, and reports them to the master."""
