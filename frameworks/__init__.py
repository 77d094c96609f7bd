"""What is under test: one room a framework."""
