"""The conformance kit: simulated systems with a known ceiling, and the gates that any search strategy must pass on them; pure."""
