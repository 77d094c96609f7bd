"""The master: registry of PEs and workers, leases, message queue, control plane, and the resource manager's loop."""
