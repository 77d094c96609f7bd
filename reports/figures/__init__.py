"""Figures: each function draws on given Axes and returns its artists."""
