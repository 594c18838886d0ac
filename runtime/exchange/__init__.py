"""Memories from other systems, and back: mem0, LangGraph stores, plain lines, chat logs."""
