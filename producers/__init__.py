"""Sources and load generators: how messages enter a framework."""
