"""What the data plane can do on this machine, and what a bare socket can, in the same run."""
