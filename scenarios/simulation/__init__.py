"""Simulated agents: users with goals and changing facts over months, agents side by side."""
