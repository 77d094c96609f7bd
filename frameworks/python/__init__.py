"""No framework: Python processes that read the source themselves; the baseline of every framework."""
