"""Resource usage of processes and hosts: CPU, disk, network, garbage collection."""
