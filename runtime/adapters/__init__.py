"""Guarded memory for agents that another framework runs; each needs the extra of its name."""
