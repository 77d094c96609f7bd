"""The Intelligent Resource Manager (IRM) as pure functions and values; the master's loop gives it time and reports."""
