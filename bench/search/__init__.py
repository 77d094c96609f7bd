"""How the highest sustained rate is looked for: strategies as values, pure."""
