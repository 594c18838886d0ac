"""Turns and model calls in other processes."""
