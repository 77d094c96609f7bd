"""Search strategies for the highest sustained rate of a cell; pure values, without I/O."""
