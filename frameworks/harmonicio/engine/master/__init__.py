"""The master: registry of PEs and workers, leases, message queue, control plane, and the loop of the resource manager."""
