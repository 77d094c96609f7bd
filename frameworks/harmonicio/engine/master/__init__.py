"""The master: directory of PEs and workers, leases, the backlog queue, the resource manager's place."""
