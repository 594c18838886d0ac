"""Searches for the smallest withholding that recovers the task, each a generator of questions."""
