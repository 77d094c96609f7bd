"""The procedure of a run: deployments, trials, and what becomes of a search's answer."""
