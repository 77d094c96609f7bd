"""The throughput of the data plane on this machine, beside that of a bare socket pair in the same run."""
