"""The Intelligent Resource Manager as pure functions and values: no clock, no socket; the master's loop tells it what is."""
