"""How messages enter: one room a source, and the two loads that send through them."""
