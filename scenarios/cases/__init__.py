"""Scenarios as tests: a bank, a conversation and what is expected of it, in one readable file."""
