"""Pure analysis of measurements: verdicts, stability, bounds, sanity checks, comparisons."""
