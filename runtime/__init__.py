"""Turns: events, commands, engine, sessions, models."""
