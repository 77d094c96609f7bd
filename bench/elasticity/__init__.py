"""Elasticity: the instances that a rate needs (DS2), policies that decide about them, and simulated jobs for both."""
